"""Squared distances between given rows, summed over the differences in float64."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from dre.runtime.threads import in_threads

njit: Any = numba.njit


def direct(points: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
    """Squared distances (m, k) from points (m, d) to the rows ``ids`` (m, k)."""
    squared = torch.empty(ids.shape, dtype=torch.double)
    arguments = (points.contiguous().numpy(), rows.contiguous().numpy(), ids.contiguous().numpy(), squared.numpy())
    in_threads(_direct, len(points), ids.numel() * points.shape[1], arguments)
    return squared


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _direct(first, last, points, rows, ids, squared):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        for k in range(ids.shape[1]):
            j = ids[i, k]
            total = 0.0
            for c in range(points.shape[1]):
                apart = np.float64(points[i, c]) - np.float64(rows[j, c])
                total += apart * apart
            squared[i, k] = total
