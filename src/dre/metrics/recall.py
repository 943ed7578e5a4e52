"""Neighbor recall: how many of the nearest neighbors in X are among those in the embedding, for every number of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, check_k, paired_spaces
from dre.metrics.pairwise_pass import PairwiseStatistics
from dre.metrics.ranks import KNeighbors

Array = np.ndarray[Any, Any]


def neighbor_recall(
    X: Any,
    Y: Any,
    *,
    k: int = 100,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    device: Device = "auto",
) -> Array:
    """Compute the mean share of the m nearest neighbors in X that are among the m nearest in Y, for m = 1…k.

    recall(m) = 1/(nm) Σᵢ |N_X(i, m) ∩ N_Y(i, m)|. At random it is m/(n-1). ``dre.plot.recall`` draws the curve.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    k : int, default=100
        Largest number of neighbors, below n/2.
    metric : str or callable, default="euclidean"
        Metric between rows of X. Distances in Y are Euclidean.
    metric_kwds : dict, default=None
        Keywords of the metric.
    device : str or torch.device, default="auto"

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> neighbor_recall(X, X, k=3).tolist()
    [1.0, 1.0, 1.0]
    """
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "recall")
    k = check_k(k, pairwise.n)
    high, low = pairwise.compute(KNeighbors(HIGH, k), KNeighbors(LOW, k))
    return np.asarray(overlap(high.indices, low.indices).cpu().numpy())


def neighbor_agreement(A: Any, B: Any, *, k: int = 15, device: Device = "auto") -> float:
    """Compute the mean share of the k nearest neighbors that two embeddings of the same rows have in common.

    1/(nk) Σᵢ |N_A(i, k) ∩ N_B(i, k)|: 1 when all agree, k/(n-1) at random.

    Parameters
    ----------
    A, B : array-like of shape (n, d')
        Embeddings of the same rows.
    k : int, default=15
        Number of neighbors, below n/2.
    device : str or torch.device, default="auto"

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> neighbor_agreement(A, 3 * A[:, ::-1] + 1)
    1.0
    """
    pairwise = PairwiseStatistics(paired_spaces(A, B, device, names=("A", "B")), "agreement")
    k = check_k(k, pairwise.n)
    first, second = pairwise.compute(KNeighbors(HIGH, k), KNeighbors(LOW, k))
    return float(overlap(first.indices, second.indices)[-1])


def overlap(a: Tensor, b: Tensor, chunk_length: int = 4096) -> Tensor:
    """Return (k,): the mean share of the first m entries of each row of a (n, k) that are among the first m of b.

    An entry at position p in a and q in b is shared from m = max(p, q) + 1 on.
    """
    n, k = a.shape
    shared = torch.zeros(k, dtype=torch.long, device=a.device)
    for rows, others in zip(a.split(chunk_length), b.split(chunk_length), strict=True):
        order = others.argsort(dim=1)
        position = torch.searchsorted(others.gather(1, order), rows).clamp_max(k - 1)
        q = order.gather(1, position)
        in_both = others.gather(1, q) == rows
        p = torch.arange(k, device=a.device).expand_as(q)
        shared += torch.maximum(p, q)[in_both].bincount(minlength=k)
    return shared.cumsum(0).double() / (n * torch.arange(1, k + 1, device=a.device))
