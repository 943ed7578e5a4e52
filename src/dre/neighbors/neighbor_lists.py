"""Neighbors that the user has computed, as a pair of arrays: read, checked, and cut to the nearest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.device_array import to_host
from dre.neighbors.search import Neighbors

MISSING = -1  # id of a neighbor that UMAP and pynndescent did not find; its distance is infinite
REMEDY = "Lower perplexity or n_neighbors, or pass more neighbors."


class NeighborLists(NamedTuple):
    """Valid ids and distances of neighbors; a neighbor that is missing has the id -1."""

    indices: Tensor  # (n, m) long
    distances: Tensor  # (n, m) float

    @property
    def lack_some(self) -> bool:
        return bool((self.indices == MISSING).any())

    @property
    def are_others(self) -> Tensor:
        """Which entries (n, m) are rows other than the row itself."""
        own = torch.arange(len(self.indices), device=self.indices.device)[:, None]
        return (self.indices != own) & (self.indices != MISSING)

    def count_others(self) -> int:
        """Return how many others every row lists at least."""
        return int(self.are_others.sum(1).min())

    def graph(self) -> Any:
        """Return the distances to the others as a sparse matrix (n, n), in which rows may list different numbers."""
        row, column = self.are_others.cpu().nonzero(as_tuple=True)
        ids, distances = self.indices.cpu()[row, column], self.distances.cpu()[row, column].double()
        _refuse_twice(row * len(self.indices) + ids, len(self.indices))
        n = len(self.indices)
        return scipy.sparse.csr_array((distances.numpy(), (row.numpy(), ids.numpy())), (n, n))

    def nearest(self, k: int) -> Neighbors:
        """Return the k nearest others of each row, nearest first, or raise a ValueError if a row has fewer."""
        others = self.are_others
        counts = others.sum(1)
        if int(counts.min()) < k:
            row = int(counts.argmin())
            raise ValueError(f"precomputed neighbors: row {row} has {int(counts[row])} others, but k={k} are needed. {REMEDY}")
        at = self.distances.masked_fill(~others, torch.inf).argsort(dim=1, stable=True)[:, :k]
        indices, distances = self.indices.gather(1, at), self.distances.gather(1, at)
        n = len(indices)
        _refuse_twice((indices + n * torch.arange(n, device=indices.device)[:, None]).ravel(), n)
        return Neighbors(indices, distances)


def read_neighbor_lists(indices: Any, distances: Any, n: int) -> NeighborLists:
    """Check the neighbors that a user has computed.

    Parameters
    ----------
    indices : array, DataFrame or Tensor of shape (n, m)
        Row ids. The row itself may be listed, as UMAP and scikit-learn do. An id of -1 is a neighbor that was not found.
    distances : array, DataFrame or Tensor of shape (n, m)
        Distances to these rows, in any order.
    n : int
        Number of rows.

    Raises
    ------
    ValueError
        If the shapes, ids or distances are invalid.

    Examples
    --------
    >>> lists = read_neighbor_lists([[0, 2, 1], [1, 0, 2], [2, 1, -1]], [[0, 3.0, 1], [0, 1, 2], [0, 2, np.inf]], n=3)
    >>> lists.nearest(1).indices.tolist(), lists.lack_some
    ([[1], [0], [1]], True)
    """
    indices, distances = _as_tensor(indices, "indices"), _as_tensor(distances, "distances")
    _check_types_and_shapes(indices, distances, n)
    indices, distances = indices.long(), distances.to(indices.device)
    distances = distances if distances.is_floating_point() else distances.float()
    missing = indices == MISSING
    rule = f"ids must be from 0 to {n - 1}, or {MISSING} where a neighbor was not found"
    _refuse("id", indices, ~missing & ((indices < 0) | (indices >= n)), rule)
    invalid = ~distances.isfinite() | (distances < 0)
    rule = f"distances must be finite and not negative; a neighbor that was not found has the id {MISSING}"
    _refuse("distance", distances, ~missing & invalid, rule)
    return NeighborLists(indices, distances)


def _as_tensor(values: Any, name: str) -> Tensor:
    """Return numbers of any container, byte order and strides as a tensor, which shares no memory with an array."""
    if isinstance(values, Tensor):
        return values
    array = np.asarray(to_host(values, name))
    if array.dtype.kind not in "biufc":
        raise ValueError(f"precomputed neighbors: {name} hold {array.dtype}, not numbers")
    dtype: Any = array.dtype.newbyteorder("=")
    if array.dtype.kind in "iu":
        dtype = np.int64
    elif array.dtype.kind == "f" and array.dtype.itemsize != 4:
        dtype = np.float64
    return torch.from_numpy(np.array(array, dtype, order="C"))


def _check_types_and_shapes(indices: Tensor, distances: Tensor, n: int) -> None:
    order = "pass the pair in the order (indices, distances)"
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool:
        raise ValueError(f"precomputed neighbors: indices must be integers, not {indices.dtype}; {order}")
    if distances.is_complex() or distances.dtype == torch.bool:
        raise ValueError(f"precomputed neighbors: distances must be real numbers, not {distances.dtype}; {order}")
    shapes = f"indices {tuple(indices.shape)} and distances {tuple(distances.shape)}"
    if indices.ndim != 2 or indices.shape != distances.shape:
        raise ValueError(f"precomputed neighbors: {shapes}; both must have the shape (n, m)")
    if len(indices) != n:
        raise ValueError(f"precomputed neighbors: {shapes}, but X has {n} rows; pass one row of neighbors for each row of X")


def _refuse(what: str, values: Tensor, invalid: Tensor, rule: str) -> None:
    """Raise an error that names the first invalid entry."""
    if bool(invalid.any()):
        row, column = (int(i) for i in invalid.nonzero()[0])
        raise ValueError(f"precomputed neighbors: {what} {values[row, column].item()} in row {row}, column {column}; {rule}")


def _refuse_twice(pairs: Tensor, n: int) -> None:
    """Raise an error if a pair, row · n + id, is there twice."""
    ordered = pairs.sort().values
    twice = ordered[1:] == ordered[:-1]
    if bool(twice.any()):
        row = int(ordered[:-1][twice][0]) // n
        raise ValueError(f"precomputed neighbors: row {row} lists an id twice. List every neighbor of a row once.")
