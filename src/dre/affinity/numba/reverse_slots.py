"""Where the neighbors of a row list it in turn: a look through the short list of each, without sorting any."""

from __future__ import annotations

from typing import Any

import numba
import torch
from torch import Tensor

from dre.runtime.threads import in_threads

njit: Any = numba.njit


def reverse_slots(indices: Tensor, rows: slice) -> Tensor:
    """Positions (m, k) of the rows in the lists of their neighbors, in the flat array (n · k), or -1 if they are not there.

    Parameters
    ----------
    indices : Tensor of shape (n, k), long
        Neighbors of every row.
    rows : slice
        The m rows that are looked for.
    """
    first, last, _ = rows.indices(len(indices))
    slots = torch.empty((last - first, indices.shape[1]), dtype=torch.long)
    arguments = (indices.contiguous().numpy(), first, slots.numpy())
    in_threads(_rows, len(slots), slots.numel() * indices.shape[1] // 8, arguments)
    return slots


@njit(nogil=True, cache=True)
def _rows(first, last, indices, offset, slots):  # type: ignore[no-untyped-def]
    k = indices.shape[1]
    for m in range(first, last):
        i = m + offset
        for j in range(k):
            other = indices[i, j]
            near = indices[other]
            at = -1
            for s in range(k):
                if near[s] == i:
                    at = s
            slots[m, j] = other * k + at if at >= 0 else -1
