"""Labels of new cells, by their neighbors among the cells of a reference, and which cells are unlike all of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.gene_pca import ReferenceCells
from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_to
from dre.runtime.threads import one_thread_on
from dre.runtime.torch_state import plain_torch

Array = np.ndarray[Any, Any]
UNKNOWN = ("-1", "nan", "None", "")  # labels that are none
MOST_CELLS = 10_000  # of a reference in a model file: 2 MB
MOST_COMPARED = 50_000  # of a reference with which new cells are compared
FEWEST_OF_CLASS = 30  # cells of each class that a sample keeps
EXAMINED = 5_000  # cells of a reference whose distances to others are measured
RANK = 5  # of the neighbor whose distance tells how unlike a cell is: the first may be an outlier too
QUERIES = 4096  # at a time
CPU = torch.device("cpu")


def reference_cells(rows: Any, adata: Any, columns: Sequence[str], most: int) -> ReferenceCells:
    """Return cells of a reference with their labels, at most so many."""
    labels = {column: _labels(adata, column) for column in columns}
    codes = next(iter(labels.values()))[0] if labels else np.zeros(adata.n_obs, np.int32)
    chosen = _choose(codes, most)
    found = rows[chosen]
    found = np.asarray(found.toarray() if scipy.sparse.issparse(found) else found, np.float32)
    return ReferenceCells(
        torch.from_numpy(found), {name: (torch.from_numpy(codes[chosen]), names) for name, (codes, names) in labels.items()}
    )


def _labels(adata: Any, column: str) -> tuple[Array, list[str]]:
    """Return the code of each cell, -1 for none, and the names of the codes that occur."""
    if column not in adata.obs.columns:
        known = ", ".join(map(repr, adata.obs.columns)) or "none"
        raise ValueError(f"obs={column!r}: the reference has no such column in obs; there are: {known}")
    values = adata.obs[column].astype("category")
    order = [str(name) for name in values.cat.categories]
    names = [name for name in dict.fromkeys(order) if name not in UNKNOWN]
    by_name = {name: i for i, name in enumerate(names)}
    lookup = np.array([by_name.get(name, -1) for name in order] + [-1], np.int32)
    codes = lookup[np.asarray(values.cat.codes)]
    occur = np.unique(codes[codes >= 0])
    if not len(occur):
        raise ValueError(f"obs={column!r}: the reference has no label in this column, only -1 or missing values")
    again = np.full(len(names) + 1, -1, np.int32)
    again[occur] = np.arange(len(occur), dtype=np.int32)
    return again[codes], [names[i] for i in occur]


def _choose(codes: Array, most: int) -> Array:
    """Return a random sample of the cells, in their order, that keeps some of each class."""
    if len(codes) <= most:
        return np.arange(len(codes))
    generator = np.random.default_rng(0)
    shuffled = generator.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.searchsorted(codes[order], codes[order])
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - starts
    priority = np.where(rank < FEWEST_OF_CLASS, -1.0, generator.random(len(codes)))
    return np.sort(np.argsort(priority, kind="stable")[:most])


@dataclass(frozen=True, eq=False)
class LabelTransfer:
    """Votes of the nearest cells of a reference.

    Parameters
    ----------
    cells : ReferenceCells
    n_neighbors : int
        Cells that vote. The weight of a vote is exp(-2 (d / D)²), with the distances d to this cell and D to the last.
    """

    cells: ReferenceCells
    n_neighbors: int

    def nearest(self, rows: Array) -> tuple[Tensor, Tensor]:
        """Return ids and distances of the nearest cells, each (n, k)."""
        return _nearest(self.cells.rows, torch.from_numpy(rows), max(self.n_neighbors, RANK))

    def vote(self, indices: Tensor, distances: Tensor, column: str) -> tuple[Array, Array]:
        """Return the code of each row's label, and the share of votes for it."""
        indices, distances = indices[:, : self.n_neighbors], distances[:, : self.n_neighbors].double()
        codes, names = self.cells.labels[column]
        weights = torch.exp(-2 * (distances / distances[:, -1:].clamp_min(1e-300)).square())
        found = codes.long()[indices]  # (n, k)
        weights = weights.masked_fill(found < 0, 0.0)
        votes = torch.zeros(len(found), len(names), dtype=torch.double).scatter_add_(1, found.clamp_min(0), weights)
        share = votes / votes.sum(1, keepdim=True).clamp_min(1e-300)
        best = share.max(1)
        return best.indices.numpy(), best.values.float().numpy()

    def fifth(self, distances: Tensor) -> Array:
        """Return the distance to the fifth neighbor, or to the last of fewer."""
        found: Array = distances[:, min(RANK, distances.shape[1]) - 1].numpy()
        return found

    def limit(self, refuse: float) -> float:
        """Return the distance to the fifth neighbor that this share of the reference's cells exceed."""
        n = len(self.cells.rows)
        if n < 2:
            return float("inf")
        at = torch.linspace(0, n - 1, min(EXAMINED, n)).long()
        _, distances = _nearest(self.cells.rows, self.cells.rows[at], min(RANK, n - 1), at)
        return float(np.quantile(distances[:, -1].numpy(), 1 - refuse))


def _nearest(rows: Tensor, points: Tensor, k: int, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    parts = []
    with plain_torch(), one_thread_on(CPU):
        distances = Distances(rows)
        k = min(k, len(rows) - (exclude is not None))
        for start in range(0, len(points), QUERIES):
            part = slice(start, start + QUERIES)
            indices, squared = nearest_to(distances, points[part], k, None if exclude is None else exclude[part])
            parts.append((indices, squared.sqrt() * distances.unit))
    indices, found = (torch.cat(each) for each in zip(*parts, strict=True))
    return indices, found
