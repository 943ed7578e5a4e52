"""The bandwidth of every row that gives its weights a perplexity: the bisection of ``solve_increasing``, row by row.

It tries the same bandwidths as scikit-learn, and so ends at the same. Newton's method would be quicker, but end elsewhere
within the tolerance.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from dre.affinity import STEPS
from dre.runtime.threads import in_threads

EXPONENTIAL = 16  # an exponential, with all around it, takes as long as so many pairs of other kernels
njit: Any = numba.njit


def gaussian_weights(squared: Tensor, log_perplexity: float, tolerance: float) -> Tensor:
    """Weights (n, k) ∝ exp(-squared · s) of each row, with s such that their entropy is the logarithm of the perplexity.

    Parameters
    ----------
    squared : Tensor of shape (n, k), float64
        Squared distances, of which the first of a row is 0 and the least.
    log_perplexity : float
    tolerance : float
        Largest difference between the entropy and ``log_perplexity``.
    """
    weights = torch.empty_like(squared)
    arguments = (squared.contiguous().numpy(), log_perplexity, tolerance, weights.numpy())
    in_threads(_rows, len(squared), EXPONENTIAL * squared.numel(), arguments)
    return weights


@njit(nogil=True, cache=True, error_model="numpy")
def _rows(first, last, squared, log_perplexity, tolerance, weights):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        s, low, high, total = 1.0, 0.0, np.inf, 1.0
        for _ in range(STEPS):
            total, mean = _weights(squared[i], s, weights[i])
            gap = np.log(total) + s * mean - log_perplexity  # of the entropy
            if abs(gap) <= tolerance:
                break
            low, high = (s, high) if gap > 0 else (low, s)
            s = 2 * s if high == np.inf else 0.5 * (low + high)
        for j in range(squared.shape[1]):
            weights[i, j] /= total


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _weights(squared, s, weights):  # type: ignore[no-untyped-def]
    """Write exp(-s · squared); return the sum, and the mean of ``squared`` under these weights."""
    total = along = 0.0
    for j in range(len(squared)):
        d = squared[j]
        w = np.exp(-d * s)
        weights[j] = w
        total += w
        if w > 0:
            along += w * d
    return total, along / total
