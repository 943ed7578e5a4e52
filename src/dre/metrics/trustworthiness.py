"""Trustworthiness and continuity: neighbours that the map invented, and neighbours that it tore apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.neighborhoods import RanksOfNeighbors
from dre.metrics.points import HIGH, LOW, Device, check_k, two_spaces
from dre.metrics.question import Measure, Question, Score
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

    Exact for any n and precision: float32 products decide where they are clear, float64 differences where two distances are too
    close to tell, and ties go by index. ``per_point=True`` gives an array of n values: their mean is T, and the low ones show
    where the map lies.
    """
    study = Study(two_spaces(X, Y, device), "trustworthiness")
    question = Question(study.n, check_k(k, study.n))
    return TRUSTWORTHINESS.of_points(question, study) if per_point else TRUSTWORTHINESS.value(question, study)


def continuity(X: Any, Y: Any, *, k: int = 7, per_point: bool = False, device: Device = "auto") -> float | Array:
    """How far neighbours in X stay neighbours in the map Y: 1 when all do.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> continuity(X, X)
    1.0

    C = 1 - 2/(nk(2n-3k-1)) Σᵢ Σⱼ (r(i, j) - k), over the j that are among the k nearest of i in X but not in Y; r(i, j) is the
    rank of j among the others of i in Y. ``per_point`` and the precision are as for ``trustworthiness``.
    """
    study = Study(two_spaces(X, Y, device), "continuity")
    question = Question(study.n, check_k(k, study.n))
    return CONTINUITY.of_points(question, study) if per_point else CONTINUITY.value(question, study)


def _measure(name: str, ranked_in: str) -> Measure:
    def score(question: Question, study: Study) -> Score:
        n, k = question.n, question.k
        (ranks,) = study.find(RanksOfNeighbors(ranked_in, k))
        values = 1 - 2 * (ranks - k).clamp_min(0).sum(1).double() / (k * (2 * n - 3 * k - 1))
        return Score(float(values.mean()), values)

    return Measure(name, lambda question: (RanksOfNeighbors(ranked_in, question.k),), score)


TRUSTWORTHINESS = _measure("trustworthiness", HIGH)
CONTINUITY = _measure("continuity", LOW)
