"""The two passes of the Shepard loss over the pairs of rows and landmarks in a plane, on a CPU."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from dre.runtime.threads import in_threads

njit: Any = numba.njit


def sums(y: Tensor, others: Tensor, distances: Tensor, ids: Tensor) -> Tensor:
    """Sums of d, d², x, x² and x d over all pairs, with the distances d in the map and x in the input."""
    of_rows = np.empty((len(y), 5), np.float32)
    _in_threads(_sums, (y, others, distances, ids), of_rows)
    return torch.from_numpy(of_rows.sum(0, dtype=np.float64))


def pull(y: Tensor, others: Tensor, distances: Tensor, ids: Tensor, slope: Tensor) -> Tensor:
    """Gradient by each row of a sum over the pairs with these slopes."""
    pulls = torch.empty(y.shape)
    _in_threads(_pull, (y, others, distances, ids), slope.numpy(), pulls.numpy())
    return pulls


def _in_threads(kernel: Any, apart: tuple[Tensor, ...], *more: Any) -> None:
    b, m = len(apart[0]), apart[1].shape[1]
    in_threads(kernel, b, 2 * b * m, (*(part.contiguous().numpy() for part in apart), *more))


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _sums(first, last, y, others, distances, ids, of_rows):  # type: ignore[no-untyped-def]
    px, py = others[0], others[1]
    for i in range(first, last):
        xi, yi, row = y[i, 0], y[i, 1], distances[ids[i]]
        d1 = d2 = x1 = x2 = xd = np.float32(0)
        for j in range(len(px)):
            dx, dy = xi - px[j], yi - py[j]
            squared = dx * dx + dy * dy
            d, x = np.sqrt(squared), row[j]
            d1 += d
            d2 += squared
            x1 += x
            x2 += x * x
            xd += x * d
        of_rows[i, 0], of_rows[i, 1], of_rows[i, 2], of_rows[i, 3], of_rows[i, 4] = d1, d2, x1, x2, xd


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _pull(first, last, y, others, distances, ids, slopes, pulls):  # type: ignore[no-untyped-def]
    px, py = others[0], others[1]
    by_x, by_d, constant = slopes[0], slopes[1], slopes[2]
    tiny = np.float32(1e-24)  # a row does not move away from itself
    for i in range(first, last):
        xi, yi, row = y[i, 0], y[i, 1], distances[ids[i]]
        sx = sy = np.float32(0)
        for j in range(len(px)):
            dx, dy = xi - px[j], yi - py[j]
            slope = (by_x * row[j] + constant) / np.sqrt(dx * dx + dy * dy + tiny) - by_d
            sx += slope * dx
            sy += slope * dy
        pulls[i, 0], pulls[i, 1] = sx, sy
