"""Layer norm and ReLU in one pass over a row, and its gradient in another."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

njit: Any = numba.njit
FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}  # no "nnan": NaN must reach the loss, which reports it


@njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def forward(h, gain, shift, eps, rstd, out):  # type: ignore[no-untyped-def]
    """Normalize the rows of h in place, remember 1/std of each, and write max(0, gain · h + shift)."""
    b, width = h.shape
    share = np.float32(1.0 / width)
    for i in range(b):
        total = np.float32(0)
        for j in range(width):
            total += h[i, j]
        mean = total * share
        square = np.float32(0)
        for j in range(width):
            apart = h[i, j] - mean
            square += apart * apart
        r = np.float32(1) / np.sqrt(square * share + eps)
        rstd[i] = r
        for j in range(width):
            value = (h[i, j] - mean) * r
            h[i, j] = value
            value = value * gain[j] + shift[j]
            out[i, j] = np.float32(0) if value <= np.float32(0) else value


@njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def backward(g, out, h, rstd, gain, of_gain, of_shift, of_bias):  # type: ignore[no-untyped-def]
    """Turn the gradient of the output into that of the input, in place, and write those of gain, shift and the bias before."""
    b, width = g.shape
    share = np.float32(1.0 / width)
    for j in range(width):
        of_gain[j] = of_shift[j] = of_bias[j] = np.float32(0)
    for i in range(b):
        total = along = np.float32(0)
        for j in range(width):
            value = g[i, j] if out[i, j] > np.float32(0) else np.float32(0)
            of_gain[j] += value * h[i, j]
            of_shift[j] += value
            value *= gain[j]
            total += value
            along += value * h[i, j]
            g[i, j] = value
        total *= share
        along *= share
        r = rstd[i]
        for j in range(width):
            value = r * (g[i, j] - total - h[i, j] * along)
            g[i, j] = value
            of_bias[j] += value
