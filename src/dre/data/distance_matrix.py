"""Matrices of distances that users bring: dense with all pairs, or sparse with those of neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.rows import is_rows, read_all
from dre.data.subsample import to_array

Array = np.ndarray[Any, Any]
ROWS = 1024  # compared with their columns at a time
SYMMETRIC = 1e-5  # part of the largest distance by which two directions may differ: float32 rounds by less


def check_distances(D: Any, name: str = "X") -> Any:
    """Return a dense or sparse matrix (n, n) of distances, or raise a ValueError that says what is none about it.

    A dense one has all pairs, so it must be symmetric, and zero on its diagonal. In a sparse one the stored entries are those
    of each row's neighbors, as in scikit-learn's ``kneighbors_graph(mode="distance")``.

    Examples
    --------
    >>> check_distances(np.array([[0.0, 2.0], [2.0, 0.0]])).shape
    (2, 2)
    """
    D = read_all(D) if is_rows(D) else D
    if D.dtype.kind in "biu":  # differences and squares of them would overflow, and booleans have none
        D = D.astype(np.float64)
    if len(D.shape) != 2 or D.shape[0] != D.shape[1]:
        remedy = "pass the distances between all rows, (n, n), or another metric for rows of features"
        raise ValueError(
            f"metric='precomputed': {name} has the shape {tuple(D.shape)}, which is no matrix of distances; {remedy}"
        )
    if scipy.sparse.issparse(D):
        D = scipy.sparse.csr_array(D)
        _refuse_negative(D, D.data, name)
        return D
    _refuse_negative(D, D, name)
    diagonal = np.abs(np.diagonal(D))
    largest = float(D.max())
    if float(diagonal.max()) > SYMMETRIC * largest:
        row = int(diagonal.argmax())
        raise ValueError(f"{name}: row {row} has the distance {D[row, row]} to itself. Pass distances, not similarities.")
    for start in range(0, len(D), ROWS):
        part = slice(start, start + ROWS)
        apart = np.abs(D[part] - D[:, part].T.astype(D.dtype))
        if float(apart.max()) > SYMMETRIC * largest:
            i, j = (int(x) for x in np.unravel_index(apart.argmax(), apart.shape))
            there, back = D[start + i, j], D[j, start + i]
            raise ValueError(
                f"{name} is not symmetric: {there} from row {start + i} to row {j}, {back} back. Pass ({name} + {name}.T) / 2, "
                "or a sparse matrix with the neighbors of each row."
            )
    return D


def check_finite_distances(D: Any, name: str = "X") -> None:
    """Raise a ValueError that names the first pair of rows whose distance is NaN or infinite.

    >>> check_finite_distances(scipy.sparse.csr_array(([1.0, np.inf], [1, 0], [0, 1, 2]), (2, 2)))
    Traceback (most recent call last):
    ...
    ValueError: X: the distance from row 1 to row 0 is inf. A sparse matrix lists neighbors: leave out pairs without a distance.
    """
    values = D.data if scipy.sparse.issparse(D) else D
    if values.dtype.kind != "f" or len(D.shape) != 2:
        return
    with np.errstate(over="ignore"):
        total = values.sum(dtype=np.float64)
    if np.isfinite(total) or bool(np.isfinite(values).all()):
        return
    wrong = np.flatnonzero(~np.isfinite(values).ravel())
    value, (i, j) = values.ravel()[wrong[0]], _pair(D, int(wrong[0]))
    if i == j and D.shape[0] == D.shape[1]:
        raise ValueError(f"{name}: the distance of row {i} to itself is {value}. Set the diagonal to 0.")
    count = f" (one of {len(wrong):,} that are not finite)" if len(wrong) > 1 else ""
    if scipy.sparse.issparse(D):
        remedy = "A sparse matrix lists neighbors: leave out pairs without a distance."
    else:
        remedy = (
            "Pass a large finite distance for rows that are not connected, or a sparse matrix of the neighbors of each row."
        )
    raise ValueError(f"{name}: the distance from row {i} to row {j} is {value}{count}. {remedy}")


def _pair(D: Any, at: int) -> tuple[int, int]:
    """Row and column of an entry, counted among those that are stored."""
    if scipy.sparse.issparse(D):
        return int(np.searchsorted(D.indptr, at, side="right")) - 1, int(D.indices[at])
    row, column = divmod(at, D.shape[1])
    return row, column


def _refuse_negative(D: Any, values: Array, name: str) -> None:
    negative = values < 0
    if negative.any():
        at = int(np.flatnonzero(negative.ravel())[0])
        i, j = _pair(D, at)
        raise ValueError(f"{name} has a negative distance, {values.ravel()[at]}, from row {i} to row {j}")


class DistanceRows:
    """A matrix (n, n) of distances as Rows of which some are taken together with their columns: those among them."""

    def __init__(self, D: Any) -> None:
        if D.shape[0] != np.prod(D.shape[1:]):
            remedy = "pass those of the fitted rows, or compare with other distances, such as metric='euclidean'"
            raise ValueError(
                f"distances {tuple(D.shape)} to the fitted rows say nothing about those among themselves: {remedy}"
            )
        self.shape = tuple(D.shape)
        self._D = D

    def read(self, start: int, stop: int) -> Tensor:
        return torch.from_numpy(to_array(self._D, np.arange(start, stop)))

    def take(self, ids: Tensor) -> Tensor:
        """Return the distances (m, m) among the rows ``ids`` (m,).

        >>> DistanceRows(np.array([[0, 1, 2], [1, 0, 4], [2, 4, 0]])).take(torch.tensor([1, 2])).tolist()
        [[0, 4], [4, 0]]
        """
        wanted = ids.cpu().numpy()
        return torch.from_numpy(np.ascontiguousarray(to_array(self._D, wanted)[:, wanted]))
