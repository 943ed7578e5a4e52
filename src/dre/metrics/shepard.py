"""Shepard goodness: whether far pairs are far in the map, as the rank correlation of all distances."""

from __future__ import annotations

from typing import Any, NamedTuple

from dre.metrics.points import LOW, Device, one_of, two_spaces
from dre.metrics.question import Measure, Question, Score
from dre.metrics.shepard_binned import Binned
from dre.metrics.shepard_sorted import BYTES_PER_PAIR, Sorted
from dre.metrics.study import Part, Study
from dre.runtime import available_bytes

EXACT_UP_TO = 3_000  # rows: 4.5 million pairs can still be sorted, in two seconds and a third of a GiB
METHODS = ("auto", "exact", "histogram")


class Goodness(NamedTuple):
    """A rank correlation, and how far off it may be."""

    value: float
    error: float


def shepard_goodness(
    X: Any, Y: Any, *, method: str = "auto", return_error: bool = False, device: Device = "auto"
) -> float | tuple[float, float]:
    """Spearman's rank correlation between all distances in X and all in the map Y: 1 when their order is kept.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> round(shepard_goodness(X, X), 12)
    1.0

    ρ = Σ (R - R̄)(r - r̄) / sqrt(Σ (R - R̄)² Σ (r - r̄)²) over all pairs i < j, where R is the rank of the distance of i and j in
    X, r that in Y, and equal distances share their mean rank.

    ``method="exact"`` sorts all distances, which are held in memory: "auto" takes it up to 3,000 rows. ``"histogram"`` holds
    none: distances in one bin, 1/32768 of themselves wide, share their mean rank too. With ``return_error=True`` a bound on
    what the bins change comes along: about .00006, and 0 if exact. The change itself is usually far smaller, above all where
    there are few different distances. (In data of float32 beyond 5,000 rows, rounding may put a distance into the next bin;
    the bound leaves that out.)
    """
    one_of("method", method, METHODS)
    study = Study(two_spaces(X, Y, device), "Shepard goodness")
    found = Goodness(*study.find(_part(Question(study.n, shepard=method), study.device.type))[0])
    return found if return_error else found.value


def _part(question: Question, device: str = "cpu") -> Part:
    n = question.n
    if question.shepard == "exact":
        needed, available = BYTES_PER_PAIR * n * (n - 1) // 2, available_bytes(device)
        if available is not None and needed > available:
            raise ValueError(
                f"to sort the distances of {n:,} rows takes about {needed / 2**30:.0f} GiB, and {available / 2**30:.0f} GiB "
                "are available; method='histogram' gives the value with a bound on its error"
            )
    return Sorted() if question.shepard == "exact" or (question.shepard == "auto" and n <= EXACT_UP_TO) else Binned()


def _score(question: Question, study: Study) -> Score:
    value, error = study.find(_part(question, study.spaces[LOW].device.type))[0]
    return Score(value, remark=f"± {error:.1g}" if error else "")


SHEPARD_GOODNESS = Measure("shepard_goodness", lambda question: (_part(question),), _score)
