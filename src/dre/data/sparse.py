"""Sparse rows: moments and products of the scaled rows, which are never made dense as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

METRICS = ("euclidean", "cosine")  # whose transform keeps zeros


def is_sparse(X: Any) -> bool:
    return bool(scipy.sparse.issparse(X))


def moments(X: Any, metric: str) -> tuple[Tensor, Tensor, float]:
    """Mean of each column, its summed squared deviations in a unit, and that unit: the largest value."""
    X = transformed(X, metric)
    unit = float(np.abs(X.data).max(initial=0.0))
    mean = np.asarray(X.mean(0)).ravel()
    if unit == 0:
        return torch.from_numpy(mean), torch.zeros(X.shape[1], dtype=torch.double), 0.0
    squares = np.asarray((X / unit).power(2).sum(0)).ravel() - X.shape[0] * (mean / unit) ** 2
    return torch.from_numpy(mean), torch.from_numpy(squares).clamp_min_(0), unit


def transformed(X: Any, metric: str) -> Any:
    """Rows in float64, of length 1 for the cosine; rows of zeros stay as they are."""
    X = X.astype(np.float64)
    if metric == "cosine":
        length = np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel())
        X = scipy.sparse.diags_array(1 / np.where(length > 0, length, 1.0)) @ X
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
        self._mean = mean.cpu().double().numpy()

    def times(self, matrix: Tensor, start: int, stop: int) -> Tensor:
        """Rows from start to stop times a matrix (d, k)."""
        dense = matrix.cpu().double().numpy()
        product = transformed(self._X[start:stop], self._metric) @ dense
        return torch.from_numpy((product - self._mean @ dense) / self._scale)

    def transposed_times(self, matrix: Tensor) -> Tensor:
        """All rows, transposed, times a matrix (n, k)."""
        dense = matrix.cpu().double().numpy()
        product = transformed(self._X, self._metric).T @ dense
        return torch.from_numpy((product - np.outer(self._mean, dense.sum(0))) / self._scale)
