"""Interpolation between rows and a grid, row by row."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dre.runtime.threads import in_threads

Array = np.ndarray[Any, Any]
njit: Any = numba.njit


def spread(y: Array, low: float, h: float, mass: Array) -> None:
    """Add 1, x and y of each row to the nodes around it."""
    _spread(y, np.float32(low), np.float32(1 / h), mass)


def gather(y: Array, low: float, h: float, field: Array, out: Array) -> None:
    """Interpolate fields (4, nodes, nodes) at the rows, into (4, n)."""
    in_threads(_gather, len(y), 64 * len(y), (y, np.float32(low), np.float32(1 / h), field, out))


@njit(fastmath=True, cache=True, inline="always")
def _cubic(u):  # type: ignore[no-untyped-def]
    one, two, six = np.float32(1), np.float32(2), np.float32(1 / 6)
    half = np.float32(0.5)
    return (
        -u * (u - one) * (u - two) * six,
        (u + one) * (u - one) * (u - two) * half,
        -(u + one) * u * (u - two) * half,
        (u + one) * u * (u - one) * six,
    )


@njit(fastmath=True, nogil=True, cache=True)
def _spread(y, low, per_h, mass):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        a, b = (y[i, 0] - low) * per_h, (y[i, 1] - low) * per_h
        p, q = int(a), int(b)
        wa, wb = _cubic(np.float32(a - p)), _cubic(np.float32(b - q))
        for s in range(4):
            for t in range(4):
                w = wa[s] * wb[t]
                mass[0, p + s - 1, q + t - 1] += w
                mass[1, p + s - 1, q + t - 1] += w * y[i, 0]
                mass[2, p + s - 1, q + t - 1] += w * y[i, 1]


@njit(fastmath=True, nogil=True, cache=True)
def _gather(first, last, y, low, per_h, field, out):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        a, b = (y[i, 0] - low) * per_h, (y[i, 1] - low) * per_h
        p, q = int(a), int(b)
        wa, wb = _cubic(np.float32(a - p)), _cubic(np.float32(b - q))
        f0 = f1 = f2 = f3 = np.float32(0)
        for s in range(4):
            for t in range(4):
                w = wa[s] * wb[t]
                f0 += w * field[0, p + s - 1, q + t - 1]
                f1 += w * field[1, p + s - 1, q + t - 1]
                f2 += w * field[2, p + s - 1, q + t - 1]
                f3 += w * field[3, p + s - 1, q + t - 1]
        out[0, i], out[1, i], out[2, i], out[3, i] = f0, f1, f2, f3
