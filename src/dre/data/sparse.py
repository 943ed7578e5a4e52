"""Sparse rows: moments and products of the scaled rows, which are never made dense as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.moments import Moments

METRICS = ("euclidean", "cosine")  # whose transform keeps zeros


def is_sparse(X: Any) -> bool:
    return bool(scipy.sparse.issparse(X))


def moments(X: Any, metric: str) -> Moments:
    """Find mean and squared deviations of each column."""
    X = transformed(X, metric)
    found = _deviations(X, np.asarray(X.mean(0)).ravel())
    rounded = (found.is_constant & (found.squares > 0)).numpy()
    if not rounded.any():
        return found
    return _deviations(X, np.where(rounded, X[[0]].toarray().ravel(), found.mean.numpy()))


def _deviations(X: Any, mean: Any) -> Moments:
    """Sum the squared deviations of stored values, and those of zeros, in units of the largest value."""
    n, d = X.shape
    unit = float(np.abs(X.data).max(initial=0.0))
    if unit == 0:
        return Moments(torch.from_numpy(mean), torch.zeros(d, dtype=torch.double), 0.0, n)
    stored = ((X.data - mean[X.indices]) / unit) ** 2
    zeros = n - np.bincount(X.indices, minlength=d)
    squares = np.bincount(X.indices, weights=stored, minlength=d) + zeros * (mean / unit) ** 2
    return Moments(torch.from_numpy(mean), torch.from_numpy(squares), unit, n)


def transformed(X: Any, metric: str) -> Any:
    """Rows in float64, of length 1 for the cosine; rows of zeros stay as they are."""
    X = X.astype(np.float64)  # a copy
    X.sum_duplicates()
    if metric == "cosine":
        counts = np.diff(X.indptr)
        largest = np.asarray(abs(X).max(axis=1).todense()).ravel()
        X.data /= np.repeat(np.where(largest > 0, largest, 1.0), counts)  # squares can't overflow or vanish
        length = np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel())
        X.data /= np.repeat(np.where(length > 0, length, 1.0), counts)
    return X


class ScaledSparse:
    """Products with rows that are centered and divided by one number, computed from the sparse rows.

    Parameters
    ----------
    X : sparse array of shape (n, d)
    metric : {"euclidean", "cosine"}
    mean : Tensor of shape (d,)
    scale : float
    """

    def __init__(self, X: Any, metric: str, mean: Tensor, scale: float) -> None:
        self._X, self._metric, self._scale = X, metric, scale
        self._mean = mean.cpu().double().numpy() / scale

    def times(self, matrix: Tensor, start: int, stop: int) -> Tensor:
        """Rows from start to stop times a matrix (d, k)."""
        dense = matrix.cpu().double().numpy()
        return torch.from_numpy(self._scaled(self._X[start:stop]) @ dense - self._mean @ dense)

    def are_within(self, limit: float, start: int, stop: int) -> Tensor:
        """Whether no value of a row from start to stop lies farther from the mean than the limit."""
        X = self._scaled(self._X[start:stop])
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        zero_is_far = abs(self._mean) > limit
        far_zeros = zero_is_far.sum() - np.bincount(row, zero_is_far[X.indices], X.shape[0])
        far = np.bincount(row, ~(abs(X.data - self._mean[X.indices]) <= limit), X.shape[0])
        return torch.from_numpy(far + far_zeros == 0)

    def transposed_times(self, matrix: Tensor) -> Tensor:
        """All rows, transposed, times a matrix (n, k)."""
        dense = matrix.cpu().double().numpy()
        return torch.from_numpy(self._scaled(self._X).T @ dense - np.outer(self._mean, dense.sum(0)))

    def _scaled(self, X: Any) -> Any:
        """Rows divided by the scale, but not centered. Products of larger ones could overflow."""
        X = transformed(X, self._metric)
        X.data /= self._scale
        return X
