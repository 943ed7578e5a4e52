"""Trustworthiness and continuity: neighbours that the map invented, and neighbours that it tore apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.measure import Measure, Score
from dre.metrics.neighborhoods import RanksOfOther
from dre.metrics.points import HIGH, LOW, Device, check_k, two_spaces
from dre.metrics.study import Study

Array = np.ndarray[Any, Any]


def trustworthiness(X: Any, Y: Any, *, k: int = 7, per_point: bool = False, device: Device = "auto") -> float | Array:
    """How far one may trust that neighbours in the map Y are neighbours in X: 1 when all are.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> trustworthiness(X, X)
    1.0

    T = 1 - 2/(nk(2n-3k-1)) Σᵢ Σⱼ (r(i, j) - k), over the j that are among the k nearest of i in Y but not in X; r(i, j) is the
    rank of j among the others of i in X, 1 for the nearest.

    Exact at any n, on data of any precision: float32 products say who is nearer, and the differences themselves, in float64,
    where that is close. Ties are broken by index. ``per_point=True`` gives an array of n values, whose mean T is: where the map
    lies.
    """
    spaces = two_spaces(X, Y, device)
    study = Study(spaces, check_k(k, len(spaces[LOW])), only_order=True, title="trustworthiness")
    return TRUSTWORTHINESS(study, per_point)  # type: ignore[no-any-return]


def continuity(X: Any, Y: Any, *, k: int = 7, per_point: bool = False, device: Device = "auto") -> float | Array:
    """How far neighbours in X stay neighbours in the map Y: 1 when all do.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> continuity(X, X)
    1.0

    C = 1 - 2/(nk(2n-3k-1)) Σᵢ Σⱼ (r(i, j) - k), over the j that are among the k nearest of i in X but not in Y; r(i, j) is the
    rank of j among the others of i in Y. ``per_point`` and the precision are as for ``trustworthiness``.
    """
    spaces = two_spaces(X, Y, device)
    study = Study(spaces, check_k(k, len(spaces[LOW])), only_order=True, title="continuity")
    return CONTINUITY(study, per_point)  # type: ignore[no-any-return]


def _measure(name: str, ranks_in: str) -> Measure:
    ranks = RanksOfOther(ranks_in)

    def score(study: Study) -> Score:
        k = study.k
        beyond = (study.find(ranks)[0] - k).clamp_min(0).sum(1).double()
        values = 1 - 2 * beyond / (k * (2 * study.n - 3 * k - 1))
        return Score(float(values.mean()), values)

    return Measure(name, lambda study: (ranks,), score)


TRUSTWORTHINESS = _measure("trustworthiness", HIGH)
CONTINUITY = _measure("continuity", LOW)
