"""Shepard goodness: whether far pairs are far in the map, as the rank correlation of all distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre.inputs import available_bytes
from dre.metrics.measure import Measure, Score
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, Device, one_of, two_spaces
from dre.metrics.study import Gathering, Part, Study

EXACT_UP_TO = 3_000  # rows: 4.5 million pairs can still be sorted, in two seconds and a third of a GiB
METHODS = ("auto", "exact", "histogram")
BYTES_PER_PAIR = 72  # while two lists of them are ranked
BITS, OCTAVES = 14, 48  # a bin is 1/16384 of a squared distance wide; those below 2⁻⁴⁸ of the largest share one
BASE = (127 - OCTAVES) << BITS  # the leading bits of 2⁻⁴⁸ as float32
BINS = (OCTAVES << BITS) + 1
SAME = 1e-11  # squared distances that differ by less, in parts of themselves, share their rank
CLOSE = 1e-3  # of the squared norms: below, the distance is taken from the differences


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
    none: distances that differ by less than 1/32768 of themselves, and so share their leading bits, share their mean rank too.
    With ``return_error=True`` the value comes with a bound on what that may change: about .00006, and 0 if exact. The change
    itself is commonly far less; where there are few different distances, the bound is wide and the change next to nothing.
    """
    one_of("method", method, METHODS)
    study = Study(two_spaces(X, Y, device), shepard=method, title="Shepard goodness")
    found: Goodness = study.find(_part(study))[0]
    return found if return_error else found.value


def _part(study: Study) -> Part:
    n = study.n
    if study.shepard == "exact":
        needed, available = BYTES_PER_PAIR * n * (n - 1) // 2, available_bytes()
        if available is not None and needed > available:
            raise ValueError(
                f"to sort the distances of {n:,} rows takes about {needed / 2**30:.0f} GiB, and {available / 2**30:.0f} GiB "
                "are available; method='histogram' gives the value with a bound on its error"
            )
    return Sorted() if study.shepard == "exact" or (study.shepard == "auto" and n <= EXACT_UP_TO) else Binned()


@dataclass(frozen=True)
class Sorted:
    needs: tuple[Part, ...] = ()

    def begin(self, study: Study) -> Gathering:
        return _Sorted(study)


@dataclass(frozen=True)
class Counts:
    """How many pairs have a distance in each bin."""

    space: str
    needs: tuple[Part, ...] = ()

    def begin(self, study: Study) -> Gathering:
        return _Counts(study, self.space)


@dataclass(frozen=True)
class Binned:
    needs: tuple[Part, ...] = (Counts(HIGH), Counts(LOW))

    def begin(self, study: Study) -> Gathering:
        return _Binned(study, *study.find(*self.needs))


class _Sorted:
    def __init__(self, study: Study) -> None:
        self._study = study
        self._lists: dict[str, list[Tensor]] = {HIGH: [], LOW: []}

    def take(self, block: Block) -> None:
        for space, parts in self._lists.items():
            parts.append(block.once(self._true(block, space)))

    def _true(self, block: Block, space: str) -> Tensor:
        """Squared distances that are right in parts of themselves, also of close and of equal rows."""
        distances = self._study.distances(space)
        squared = block.squared(space).double()
        norms = distances.norms[block.some, None] + distances.norms[block.others]
        rows, columns = (squared <= CLOSE * norms).nonzero(as_tuple=True)
        true = distances.direct_pairs(block.some.start + rows, block.others.start + columns)
        return squared.index_put((rows, columns), true)

    def result(self) -> Goodness:
        high, low = (_mean_ranks(torch.cat(self._lists.pop(space))) for space in (HIGH, LOW))
        high -= high.mean()
        low -= low.mean()
        both = float(high.norm() * low.norm())
        return Goodness(float(high @ low) / both if both else float("nan"), 0.0)


def _mean_ranks(values: Tensor) -> Tensor:
    """The rank of each value; equal ones share the mean of theirs."""
    values, order = values.sort()
    first = torch.ones_like(values, dtype=torch.bool)
    first[1:] = values[1:] > values[:-1] * (1 + SAME)
    group = first.cumsum(0) - 1
    sizes = group.bincount()
    ends = sizes.cumsum(0)
    means = ends.double() - (sizes.double() - 1) / 2
    return torch.empty_like(values).scatter_(0, order, means[group])


class _Bins:
    """Which bin a squared distance falls in: the leading bits of its floating-point number."""

    def __init__(self, study: Study, space: str) -> None:
        self._space = space
        largest = 4 * float(study.distances(space).norms.max())  # |a - b|² <= (2 max|a|)²
        self._scale = 1 / largest if largest > 0 else 1.0

    def __call__(self, block: Block) -> Tensor:
        squared = (block.once(block.squared(self._space)) * self._scale).float().clamp_(0, 1)
        return (squared.view(torch.int32) >> (23 - BITS)).sub_(BASE).clamp_(0, BINS - 1)


class _Counts:
    def __init__(self, study: Study, space: str) -> None:
        self._bins = _Bins(study, space)
        self._counts = torch.zeros(BINS, dtype=torch.long, device=study.spaces[space].device)

    def take(self, block: Block) -> None:
        self._counts += self._bins(block).bincount(minlength=BINS)

    def result(self) -> Tensor:
        return self._counts


class _Binned:
    def __init__(self, study: Study, high: Tensor, low: Tensor) -> None:
        self._bins = [_Bins(study, space) for space in (HIGH, LOW)]
        self._counts = [high.double(), low.double()]
        pairs = float(self._counts[0].sum())
        self._ranks = [counts.cumsum(0) - (counts - 1) / 2 - (pairs + 1) / 2 for counts in self._counts]  # about their mean
        self._product = 0.0

    def take(self, block: Block) -> None:
        high, low = (ranks.index_select(0, bins(block)) for ranks, bins in zip(self._ranks, self._bins, strict=True))
        self._product += float(high @ low)

    def result(self) -> Goodness:
        both = list(zip(self._counts, self._ranks, strict=True))
        lengths = [float((counts * ranks.square()).sum()) ** 0.5 for counts, ranks in both]
        if not all(lengths):
            return Goodness(float("nan"), 0.0)
        # Ranks are those of the bins plus a rest that sums to 0 in every bin, and whose square is at most Σ (c³ - c)/12. With
        # its length α and β, in parts of the ranks' own, Cauchy and Schwarz leave no more than this for the products with it.
        alpha, beta = (
            float(((counts**3 - counts).sum() / 12) ** 0.5) / length
            for counts, length in zip(self._counts, lengths, strict=True)
        )
        error = alpha + beta + alpha * beta + alpha**2 + beta**2
        return Goodness(self._product / (lengths[0] * lengths[1]), min(2.0, error))


def _score(study: Study) -> Score:
    found: Goodness = study.find(_part(study))[0]
    return Score(found.value, remark=f"± {found.error:.1g}" if found.error else "")


SHEPARD_GOODNESS = Measure("shepard_goodness", lambda study: (_part(study),), _score)
