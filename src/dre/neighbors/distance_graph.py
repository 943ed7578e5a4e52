"""Neighbors from a sparse matrix of distances, such as ``adata.obsp["distances"]``, also where rows list different numbers."""

from __future__ import annotations

import heapq
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
NEAR_ONE = 1e-5


class GraphNeighbors(NamedTuple):
    """The same number of neighbors of every row, nearest first."""

    indices: Tensor  # (n, k) long
    distances: Tensor  # (n, k) float64
    completed: int  # rows that list fewer, to which the nearest rows along paths of the graph were added


def neighbors_in_graph(D: Any, n: int, k: int) -> GraphNeighbors:
    """Read the nearest neighbors of each row from a sparse matrix of distances.

    The stored entries of a row are its neighbors, zeros included; the row itself is left out. Where rows list different
    numbers, as in the graphs of BBKNN, the median of them is read, and at most k. Rows that list fewer go on along the graph:
    the distance to a neighbor of a neighbor is the length of the way, which is at least the true one in any metric.

    Parameters
    ----------
    D : sparse matrix of shape (n, n)
    n : int
        Number of rows.
    k : int
        Number of neighbors that the affinity needs; fewer are returned if the graph has fewer.

    Raises
    ------
    ValueError
        If the shape or a distance is invalid, or a row can't reach enough others.

    Examples
    --------
    >>> D = scipy.sparse.csr_array([[0, 1.0, 3.0], [1.0, 0, 2.0], [0, 2.0, 0]])
    >>> neighbors_in_graph(D, n=3, k=2).distances.tolist()
    [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]]
    """
    if tuple(D.shape) != (n, n):
        raise ValueError(
            f"precomputed_knn: a matrix {tuple(D.shape)} for {n} rows; pass the distances among these rows, ({n}, {n})"
        )
    graph = _without_diagonal(D)
    if not np.isfinite(graph.data).all() or (graph.data < 0).any():
        value = graph.data[~(np.isfinite(graph.data) & (graph.data >= 0))][0]
        raise ValueError(f"precomputed_knn: the matrix has the distance {value}; distances must be finite and not negative")
    _warn_of_similarities(graph)
    counts = np.diff(graph.indptr)
    k = max(1, min(k, int(np.median(counts))))
    indices, distances = np.empty((n, k), np.int64), np.empty((n, k))
    _read_full_rows(graph, counts, indices, distances)
    short = np.flatnonzero(counts < k)
    for row in short:
        indices[row], distances[row] = _along_paths(graph, int(row), k)
    return GraphNeighbors(torch.from_numpy(indices), torch.from_numpy(distances), len(short))


def _without_diagonal(D: Any) -> Any:
    entries = scipy.sparse.coo_array(D)
    others = entries.coords[0] != entries.coords[1]
    row, column = (ids[others] for ids in entries.coords)
    graph = scipy.sparse.csr_array((entries.data[others].astype(np.float64), (row, column)), D.shape)
    graph.sort_indices()
    return graph


def _warn_of_similarities(graph: Any) -> None:
    """Warn of matrices that look like similarities.

    In ``obsp["connectivities"]`` most rows have a 1, none has more, and most entries are below. Indicators of neighbors are 1.
    """
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    ones = abs(graph.data - 1) < NEAR_ONE
    if graph.nnz and ones.all():
        text = (
            "precomputed_knn: all entries are 1, as in kneighbors_graph(mode='connectivity'), so that all neighbors of a row "
            "are equally far: pass distances, as of mode='distance'"
        )
    elif graph.nnz and graph.data.max() <= 1 + NEAR_ONE and ones.mean() < 0.5 < len(np.unique(row[ones])) / graph.shape[0]:
        text = (
            "precomputed_knn: most rows have an entry of 1, and none has a larger one, as in a matrix of similarities such as "
            "obsp['connectivities']: pass distances, obsp['distances']"
        )
    else:
        return
    warnings.warn(text, stacklevel=3)


def _read_full_rows(graph: Any, counts: Array, indices: Array, distances: Array) -> None:
    """Write the nearest of each row that lists enough, by distance and then by row number."""
    k = indices.shape[1]
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((graph.indices, graph.data, rows))
    place = np.arange(len(order)) - np.repeat(graph.indptr[:-1], counts)  # of each entry among those of its row
    kept = (place < k) & (counts[rows] >= k)
    indices[rows[kept], place[kept]] = graph.indices[order][kept]
    distances[rows[kept], place[kept]] = graph.data[order][kept]


def _along_paths(graph: Any, start: int, k: int) -> tuple[list[int], list[float]]:
    """The k nearest rows by the length of paths (Dijkstra), ended as soon as they are found."""
    settled: dict[int, float] = {}
    waiting = [(0.0, start)]
    while waiting and len(settled) <= k:
        length, row = heapq.heappop(waiting)
        if row in settled:
            continue
        settled[row] = length
        for at in range(graph.indptr[row], graph.indptr[row + 1]):
            other = int(graph.indices[at])
            if other not in settled:
                heapq.heappush(waiting, (length + float(graph.data[at]), other))
    del settled[start]
    if len(settled) < k:
        raise ValueError(
            f"precomputed_knn: row {start} reaches {len(settled)} others in the graph, and most rows list {k}. "
            "Leave such rows out, or compute more neighbors."
        )
    return list(settled), list(settled.values())
