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
NOT_ON_MAP = "not on this map"  # the label of cells that are unlike all of a reference
UNKNOWN = ("-1", "nan", "None", "", NOT_ON_MAP)  # labels that are none
MOST_CELLS = 10_000  # of a reference in a model file: 2 MB
MOST_COMPARED = 50_000  # of a reference with which new cells are compared
SINGLE, SHARE_OF_SINGLE = 20, 0.5  # labels, and labels for each cell, beyond which they name cells rather than groups
FEWEST_OF_CLASS = 30  # cells of each class that a sample keeps
EXAMINED = 5_000  # cells of a reference whose distances to others are measured
RANK = 5  # of the neighbor whose distance tells how unlike a cell is: the first may be an outlier too
SHRINK = 20  # cells of average spread that each class gets beside its own: the spread of few cells is not known
SMALLEST = 1e-3  # distance to a neighbor, of the median: copies of a cell have a distance of zero, and no logarithm
STEEPNESS = 4.0  # of votes: by leaving one cell out of each of three references, above 2, and above equal votes
QUERIES = 4096  # at a time
CPU = torch.device("cpu")


def column_names(obs: Any) -> list[str]:
    """Return the names of columns of labels."""
    if isinstance(obs, str) or obs is None:
        return [] if obs is None else [obs]
    if hasattr(obs, "iloc") or not all(isinstance(name, str) for name in obs):
        name = getattr(obs, "name", None) or "cell_type"
        raise TypeError(f"obs is a {type(obs).__name__}: pass the name of a column of the reference's obs, such as {name!r}")
    return list(obs)


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
    _check_groups(values, column)
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


def _check_groups(values: Any, column: str) -> None:
    """Raise a ValueError for labels that name no groups of cells: continuous numbers, dates, and names of single cells."""
    kinds, labelled = values.cat.categories, int(values.notna().sum())
    remedy = "pass a column of groups, such as types of cells; pandas.cut makes groups of numbers"
    if kinds.dtype.kind == "f" and (kinds.to_numpy() % 1 != 0).any():
        raise ValueError(f"obs={column!r}: the reference has continuous values in this column, no labels: {remedy}")
    if kinds.dtype.kind in "mM":
        raise ValueError(f"obs={column!r}: the reference has dates or times in this column, no labels: {remedy}")
    occurring = int(values.nunique())
    if occurring > max(SINGLE, SHARE_OF_SINGLE * labelled):
        raise ValueError(
            f"obs={column!r}: {labelled:,} cells of the reference have {occurring:,} labels in this column: {remedy}"
        )


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
        Cells that vote. The weight of a vote is exp(-4 (d / D)²), with the distances d to this cell and D to the last.
    distance_ratio : float, default=1
        How far ordinary new cells are from those of the reference, relative to how far these are from each other.
    """

    cells: ReferenceCells
    n_neighbors: int
    distance_ratio: float = 1.0

    def nearest(self, rows: Array) -> tuple[Tensor, Tensor]:
        """Return ids and distances of the nearest cells, each (n, k)."""
        return nearest_cells(self.cells.rows, torch.from_numpy(rows), max(self.n_neighbors, RANK))

    def vote(self, indices: Tensor, distances: Tensor, column: str) -> tuple[Array, Array]:
        """Return the code of each row's label, and the share of votes for it."""
        indices, distances = indices[:, : self.n_neighbors], distances[:, : self.n_neighbors].double()
        codes, names = self.cells.labels[column]
        weights = torch.exp(-STEEPNESS * (distances / distances[:, -1:].clamp_min(1e-300)).square())
        found = codes.long()[indices]  # (n, k)
        weights = weights.masked_fill(found < 0, 0.0)
        votes = torch.zeros(len(found), len(names), dtype=torch.double).scatter_add_(1, found.clamp_min(0), weights)
        share = votes / votes.sum(1, keepdim=True).clamp_min(1e-300)
        best = share.max(1)
        return best.indices.numpy(), best.values.float().numpy()

    def are_unlike(self, indices: Tensor, distances: Tensor, share: float) -> Array:
        """Whether each row is farther from its fifth neighbor, for its class, than all but this share of ordinary new cells."""
        if len(self.cells.rows) < 2:
            return np.zeros(len(indices), bool)
        column = max(self.cells.labels, key=lambda name: len(self.cells.labels[name][1]))  # the finest classes
        usual = UsualDistances.of(self.cells, column)
        fifth = distances[:, min(RANK, distances.shape[1]) - 1].double().numpy() / self.distance_ratio
        found: Array = usual.deviations(fifth, self.vote(indices, distances, column)[0]) > np.quantile(usual.own, 1 - share)
        return found


@dataclass(frozen=True, eq=False)
class UsualDistances:
    """How far the cells of each class of a reference are from their fifth neighbor: the mean and spread of the logarithm.

    Crowded classes, such as T cells, have small distances, so that one limit for all would let everything close to them pass.

    Parameters
    ----------
    mean, spread : array of shape (classes + 1,)
        The last is that of cells without a label.
    smallest : float
        Distances below count as this one.
    own : array of shape (m,)
        Deviations of cells of the reference.
    """

    mean: Array
    spread: Array
    smallest: float
    own: Array

    @classmethod
    def of(cls, cells: ReferenceCells, column: str) -> UsualDistances:
        """Measure some cells of a reference, and of each class."""
        codes, names = cells.labels[column]
        at = _choose(codes.numpy(), EXAMINED)
        kinds = np.where(codes.numpy()[at] < 0, len(names), codes.numpy()[at])
        ids = torch.from_numpy(at)
        distances = nearest_cells(cells.rows, cells.rows[ids], RANK, ids)[1][:, -1].double().numpy()
        smallest = max(SMALLEST * float(np.median(distances)), np.finfo(np.float64).tiny)
        logs = np.log(np.maximum(distances, smallest))
        count = np.bincount(kinds, minlength=len(names) + 1)
        mean = np.bincount(kinds, logs, minlength=len(count)) / np.maximum(count, 1)
        mean[count == 0] = logs.mean()
        squared = np.square(logs - mean[kinds])
        spread = np.bincount(kinds, squared, minlength=len(count)) + SHRINK * squared.mean()
        spread = np.sqrt(spread / (count + SHRINK)).clip(np.finfo(np.float64).eps)
        return cls(mean, spread, smallest, (logs - mean[kinds]) / spread[kinds])

    def deviations(self, distances: Array, codes: Array) -> Array:
        """Return how far beyond the mean of its class each distance is, in units of the spread."""
        found: Array = (np.log(np.maximum(distances, self.smallest)) - self.mean[codes]) / self.spread[codes]
        return found


def nearest_cells(rows: Tensor, points: Tensor, k: int, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return ids of the nearest rows to each point, and their distances, but for the row ``exclude[i]`` to point i."""
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
