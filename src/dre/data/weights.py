"""Weights of rows: a row of weight 3 is fitted as three rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dre.data.rows import RowSubset, is_rows, rows_at

Array = np.ndarray[Any, Any]
MOST_COPIES = 20  # rows that are fitted, as a multiple of the rows that were given
LEAST = 2  # rows of a fit


@dataclass(frozen=True)
class RowWeights:
    """Weights as a user passes them, with the seed that rounds them.

    >>> RowWeights([1, 0, 3], seed=0).ids(3)
    array([0, 2, 2, 2])
    """

    sample_weight: Any
    seed: int

    def ids(self, n: int) -> Array:
        """Return the id of each of n rows as often as its weight says; the same ids in every call."""
        return repeated_ids(check_weights(self.sample_weight, n), self.seed)


def check_weights(sample_weight: Any, n: int) -> Array:
    """Return the weights of n rows as float64.

    Raises
    ------
    ValueError
        If there is not one weight for each row, a weight is negative or not finite, or their sum is too small or too large.

    Examples
    --------
    >>> check_weights([1, 0, 3], n=3)
    array([1., 0., 3.])
    """
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight holds values that are not numbers: pass one number for each row") from None
    if weights.ndim == 0 and np.isfinite(weights):
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array: pass one number for each row")
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}: pass one number for each row of X")
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"sample_weight of row {row} is {weights[row]}: weights must be finite and not negative")
    total = weights.sum()
    if total == 0:
        raise ValueError("all weights are zero: no row is left to fit. Give some rows a positive weight.")
    if total < LEAST:
        raise ValueError(
            f"the weights sum to {total:.3g}, and act as so many rows: a map needs {LEAST} or more. "
            "Multiply the weights by a constant, so that most rows have about 1."
        )
    if total > MOST_COPIES * n:
        raise ValueError(
            f"the weights sum to {total:.3g}, and act as so many rows, more than {MOST_COPIES} times the {n:,} of X. "
            "Divide the weights by a constant, so that most rows have about 1."
        )
    return weights


def repeated_ids(weights: Array, seed: int) -> Array:
    """Return the id of each row as often as its weight says.

    A weight between two whole numbers is rounded up or down at random, up with the probability of its fraction: the expected
    number of copies is the weight.

    >>> repeated_ids(np.array([1.0, 0.0, 3.0]), seed=0)
    array([0, 2, 2, 2])
    """
    whole = np.floor(weights)
    up = np.random.default_rng(seed).random(len(weights)) < weights - whole
    ids = np.repeat(np.arange(len(weights)), (whole + up).astype(np.int64))
    if len(ids) < LEAST:
        raise ValueError(f"{len(ids)} row(s) are left after the weights were rounded: multiply them by a constant")
    return ids


def repeat_rows(X: Any, ids: Array) -> Any:
    """Return the rows with these ids. Those of a stream are not copied."""
    wanted = torch.from_numpy(ids)
    return RowSubset(X, wanted) if is_rows(X) else rows_at(X, wanted)
