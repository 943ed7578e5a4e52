"""Neighbors that were computed before, by any of scanpy's or its companions' functions."""

from __future__ import annotations

from typing import Any

import scipy.sparse

FEWEST = 0.5  # share of the neighbors that were computed


def given_neighbors(adata: Any, neighbors_key: str) -> tuple[Any, dict[str, Any]]:
    """Return the distances to the neighbors that ``uns[neighbors_key]`` describes, sparse, and the parameters of the search."""
    if neighbors_key not in adata.uns or "distances_key" not in adata.uns[neighbors_key]:
        known = [repr(key) for key, value in adata.uns.items() if hasattr(value, "keys") and "distances_key" in value]
        found = f"there are: {', '.join(known)}" if known else "run sc.pp.neighbors(adata) first"
        raise ValueError(f"neighbors_key={neighbors_key!r}: adata.uns has no neighbors of this name; {found}")
    about = adata.uns[neighbors_key]
    if about["distances_key"] not in adata.obsp:
        raise ValueError(f"neighbors_key={neighbors_key!r}: adata.obsp has no {about['distances_key']!r}")
    graph, params = scipy.sparse.csr_array(adata.obsp[about["distances_key"]]), dict(about.get("params", {}))
    _check_whole(graph, params, neighbors_key)
    return graph, params


def _check_whole(graph: scipy.sparse.csr_array, params: dict[str, Any], neighbors_key: str) -> None:
    """Raise a ValueError if most neighbors are missing: AnnData keeps those among the cells of a subset."""
    expected = int(params.get("n_neighbors", 1)) - 1  # a cell is its own first neighbor
    mean = graph.nnz / max(graph.shape[0], 1)
    if mean < FEWEST * expected:
        raise ValueError(
            f"neighbors_key={neighbors_key!r}: a cell has {mean:.3g} neighbors on average, and {expected} were computed. The "
            "graph may be of more cells than adata has now: run sc.pp.neighbors(adata) again"
        )
