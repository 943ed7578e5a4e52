"""Trustworthiness and continuity: neighbors that the embedding adds, and neighbors that it separates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, check_k, paired_spaces
from dre.metrics.pairwise_pass import EvalConfig, Metric, PairwiseStatistics, Score
from dre.metrics.ranks import NeighborRanks

Array = np.ndarray[Any, Any]


def trustworthiness(
    X: Any,
    Y: Any,
    *,
    k: int = 7,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    per_point: bool = False,
    device: Device = "auto",
) -> float | Array:
    """Compute how far neighbors in the embedding Y are neighbors in X; 1 when all are.

    T = 1 - 2/(nk(2n-3k-1)) Σᵢ Σⱼ (r(i, j) - k), over the j among the k nearest neighbors of i in Y but not in X, with r(i, j)
    the rank of j among the neighbors of i in X, 1 for the nearest.

    The value is exact for any n and dtype: float32 products decide where they are clear, float64 differences where two
    distances are too close, and row indices break ties.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    k : int, default=7
        Number of neighbors, below n/2.
    metric : str or callable, default="euclidean"
        Metric between rows of X. Distances in Y are Euclidean.
    metric_kwds : dict, default=None
        Keywords of the metric.
    per_point : bool, default=False
        Return the n values of which T is the mean. Low values show where the embedding is distorted.
    device : str or torch.device, default="auto"

    Returns
    -------
    float, or ndarray of shape (n,) with ``per_point=True``

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> trustworthiness(X, X)
    1.0
    """
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "trustworthiness")
    config = EvalConfig(pairwise.n, check_k(k, pairwise.n))
    return TRUSTWORTHINESS.per_point(config, pairwise) if per_point else TRUSTWORTHINESS.value(config, pairwise)


def continuity(
    X: Any,
    Y: Any,
    *,
    k: int = 7,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    per_point: bool = False,
    device: Device = "auto",
) -> float | Array:
    """Compute how far neighbors in X stay neighbors in the embedding Y; 1 when all do.

    C = 1 - 2/(nk(2n-3k-1)) Σᵢ Σⱼ (r(i, j) - k), over the j among the k nearest neighbors of i in X but not in Y, with r(i, j)
    the rank of j among the neighbors of i in Y.

    Parameters
    ----------
    X, Y, k, metric, metric_kwds, per_point, device
        As for ``trustworthiness``.

    Returns
    -------
    float, or ndarray of shape (n,) with ``per_point=True``

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> continuity(X, X)
    1.0
    """
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "continuity")
    config = EvalConfig(pairwise.n, check_k(k, pairwise.n))
    return CONTINUITY.per_point(config, pairwise) if per_point else CONTINUITY.value(config, pairwise)


def _rank_metric(name: str, ranked_in: str) -> Metric:
    def score(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
        n, k = config.n, config.k
        (ranks,) = pairwise.compute(NeighborRanks(ranked_in, k))
        values = 1 - 2 * (ranks - k).clamp_min(0).sum(1).double() / (k * (2 * n - 3 * k - 1))
        return Score(float(values.mean()), values)

    return Metric(name, lambda config: (NeighborRanks(ranked_in, config.k),), score)


TRUSTWORTHINESS = _rank_metric("trustworthiness", HIGH)
CONTINUITY = _rank_metric("continuity", LOW)
