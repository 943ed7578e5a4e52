"""Neighbors that were computed before, by any of scanpy's or its companions' functions, as a fit reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

Array = np.ndarray[Any, Any]
PER_PERPLEXITY = 3  # neighbors that a Gaussian affinity reads, as a multiple of its perplexity


class GivenNeighbors(NamedTuple):
    """The neighbors of each cell, and the representation in which they were found."""

    indices: Array  # (n, k)
    distances: Array  # (n, k)
    params: dict[str, Any]

    @property
    def perplexity(self) -> float:
        """The largest for which there are enough neighbors."""
        return int(self.indices.shape[1]) / PER_PERPLEXITY


def given_neighbors(adata: Any, neighbors_key: str) -> GivenNeighbors:
    """Return the neighbors that ``uns[neighbors_key]`` describes."""
    if neighbors_key not in adata.uns or "distances_key" not in adata.uns[neighbors_key]:
        known = [repr(key) for key, value in adata.uns.items() if hasattr(value, "keys") and "distances_key" in value]
        found = f"there are: {', '.join(known)}" if known else "run sc.pp.neighbors(adata) first"
        raise ValueError(f"neighbors_key={neighbors_key!r}: adata.uns has no neighbors of this name; {found}")
    about = adata.uns[neighbors_key]
    if about["distances_key"] not in adata.obsp:
        raise ValueError(f"neighbors_key={neighbors_key!r}: adata.obsp has no {about['distances_key']!r}")
    indices, distances = nearest_in(adata.obsp[about["distances_key"]])
    return GivenNeighbors(indices, distances, dict(about.get("params", {})))


def nearest_in(graph: Any) -> tuple[Array, Array]:
    """Return as many neighbors of each row of a sparse matrix of distances as the row with the fewest has, nearest first."""
    graph = scipy.sparse.csr_array(graph)
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    others = rows != graph.indices
    rows, columns, values = rows[others], graph.indices[others], graph.data[others]
    counts = np.bincount(rows, minlength=graph.shape[0])
    k = int(counts.min())
    if k == 0:
        raise ValueError(f"cell {int(counts.argmin())} has no neighbors in the graph: compute the neighbors again, with more")
    order = np.lexsort((columns, values, rows))
    first = (np.cumsum(counts) - counts)[:, None] + np.arange(k)
    return columns[order][first].astype(np.int64), values[order][first]
