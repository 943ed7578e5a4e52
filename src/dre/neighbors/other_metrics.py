"""Nearest neighbors under metrics without a transform: exactly in blocks, or by pynndescent where the rows are many."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.metric import RowMetric
from dre.neighbors.exact import nearest_rows
from dre.neighbors.metric_distances import MetricDistances
from dre.progress.activity import activity
from dre.progress.display import say
from dre.runtime.threads import thread_count

# Up to this value of n²·(cost·d + 200) the exact search takes some 20 seconds on 2 busy cores. pynndescent takes 5, and half a
# minute more at the first search of a process under a metric, which it compiles.
EXACT_UP_TO = 1e11
SELECTING = 200
MANY_CALLS = 5_000_000  # of a function, which take several seconds
RECALL_AIM = 0.95
RECALL_SAMPLE = 256
MOST_TRIES = 3  # searches, each with more candidates than the one before
INSTALL = "pip install 'deep-recursive-embedding[neighbors]'"


class Found(NamedTuple):
    """The nearest rows, and how they were found."""

    indices: Tensor  # (n, k) long
    distances: Tensor  # (n, k) float32
    method: str
    recall: float = 1.0


def nearest_by_metric(rows: Any, k: int, metric: RowMetric, method: str = "auto") -> Found:
    """Find the k nearest other rows of every row under a metric that compares rows in blocks.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, ...)
        Or the matrix (n, n) of distances, if the metric is "precomputed".
    k : int
        From 1 to n - 1.
    metric : RowMetric
    method : {"auto", "exact", "approximate"}, default="auto"
        ``"approximate"`` needs pynndescent. ``"auto"`` uses it for many rows.

    Returns
    -------
    Found
        Nearest first; among equal distances the lower row number.

    Examples
    --------
    >>> from dre.data.metric import row_metric
    >>> nearest_by_metric(np.array([[0.0, 0.0], [3.0, 0.0], [2.0, 2.0]]), 1, row_metric("chebyshev")).indices.ravel().tolist()
    [2, 2, 0]
    """
    distances = MetricDistances.of(rows, metric)
    why_exact = _why_exact(metric)
    if method == "approximate" and why_exact is not None:
        raise ValueError(f"approximate neighbors under {metric}: {why_exact}; pass method='exact'")
    if method == "auto":
        method = _select_method(distances, metric, why_exact)
    if method == "approximate":
        return _by_descent(rows, k, metric, distances)
    title = "finding neighbors" if metric.is_precomputed else f"finding {metric} neighbors"
    indices, squared = nearest_rows(distances, k, title)
    return Found(indices, squared.sqrt().float(), "exact")


def _why_exact(metric: RowMetric) -> str | None:
    """Return why pynndescent can't search under a metric; None if it can."""
    if metric.function is not None:
        return "pynndescent would have to compile your function"
    if metric.is_precomputed:
        return "all distances are known"
    return "pynndescent has no weights of columns" if "w" in metric.kwds else None


def _select_method(distances: MetricDistances, metric: RowMetric, why_exact: str | None) -> str:
    n, calls = distances.n, distances.n * (distances.n - 1) // 2
    if metric.function is not None and calls > MANY_CALLS:
        say(f"dre: calling {metric} for {calls:,} pairs of rows, which is slow; a metric with a name is many times as fast")
    if float(n) * n * (metric.cost * distances.dim + SELECTING) <= EXACT_UP_TO or metric.is_precomputed:
        return "exact"
    if why_exact is None and importlib.util.find_spec("pynndescent") is not None:
        return "approximate"
    if metric.function is None:
        remedy = why_exact or INSTALL
        warnings.warn(f"searching the {metric} neighbors of {n:,} rows exactly, which is slow: {remedy}", stacklevel=4)
    return "exact"


def _by_descent(rows: Any, k: int, metric: RowMetric, distances: MetricDistances) -> Found:
    """Nearest neighbor descent, with more candidates until a sample of rows finds enough of its true neighbors."""
    try:
        import pynndescent
    except ImportError as problem:
        raise ImportError(f"approximate {metric} neighbors need pynndescent: {INSTALL}, or pass method='exact'") from problem
    X = metric.prepare(rows)
    X = X.astype(np.float32) if scipy.sparse.issparse(X) else np.ascontiguousarray(X, np.float32)
    n = distances.n
    sample = np.unique(np.linspace(0, n - 1, min(RECALL_SAMPLE, n)).round().astype(np.int64))
    true = _distances_of(distances, sample, k)
    searched, recall = k + 1, 0.0  # the row itself is found too
    for _ in range(MOST_TRIES):
        with activity(f"finding {metric} neighbors by pynndescent"):
            index = pynndescent.NNDescent(
                X, metric=metric.name, metric_kwds=dict(metric.kwds), n_neighbors=min(n, searched), random_state=0,
                n_jobs=thread_count(),
            )  # fmt: skip
            ids, _ = index.neighbor_graph
        found = _without_self(torch.from_numpy(ids.astype(np.int64)), k)
        near = distances.direct(torch.from_numpy(sample)[:, None], found[sample]).sqrt()
        recall = float((near <= true * (1 + 1e-4)).double().mean())  # by distance: among ties any one counts as found
        if recall >= RECALL_AIM:
            break
        searched = 2 * searched
    # Distances of pynndescent are float32, and for some metrics on another scale.
    squared = distances.direct(distances.rows, found)
    order = squared.argsort(dim=1, stable=True)
    return Found(found.gather(1, order), squared.gather(1, order).sqrt().float(), "approximate", recall)


def _distances_of(distances: MetricDistances, sample: np.ndarray[Any, Any], k: int) -> Tensor:
    """Distance of each row of a sample to its k-th neighbor, (m, 1)."""
    farthest = []
    for part in np.array_split(sample, max(1, len(sample) // 32)):
        squared = distances.from_points(torch.from_numpy(part)[:, None])
        squared[torch.arange(len(part)), torch.from_numpy(part)] = torch.inf
        farthest.append(squared.kthvalue(k, dim=1).values)
    return torch.cat(farthest).sqrt()[:, None]


def _without_self(ids: Tensor, k: int) -> Tensor:
    """The first k others of each row; where the index found fewer, rows that follow it, which the distances will rank last."""
    n = len(ids)
    own = torch.arange(n)[:, None]
    if bool((ids < 0).any()):  # the index marks what it did not find
        missing = ids < 0
        filler = _others(ids)
        ids = torch.where(missing, filler, ids)
    others_first = (ids == own).double().argsort(dim=1, stable=True)
    return ids.gather(1, others_first)[:, :k]


def _others(ids: Tensor) -> Tensor:
    """For each slot a row that its row does not list: candidates in place of those that were not found."""
    n, m = ids.shape
    filler = torch.zeros_like(ids)
    for row in (ids < 0).any(1).nonzero().ravel().tolist():
        listed = set(ids[row].tolist()) | {row}
        free = (i for i in range(n) if i not in listed)
        filler[row] = torch.tensor([next(free, row) for _ in range(m)])
    return filler
