"""Distances summed over differences in float64, without a copy of the rows that they are of. Needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.runtime import on_device_of

NEAR, VALUES = 8, 128  # of a tile


def direct(points: Tensor, rows: Tensor, near: Tensor) -> Tensor:
    """(m, k) squared distances from points (m, d) to the rows with the numbers ``near`` (m, k)."""
    (m, k), d = near.shape, rows.shape[1]
    out = torch.empty(m, k, dtype=torch.double, device=rows.device)
    with on_device_of(rows):
        _direct[(m * triton.cdiv(k, NEAR),)](  # along one axis: the others of a grid are short
            points.contiguous(), rows.contiguous(), near.contiguous(), out, k, d, NEAR=NEAR, VALUES=VALUES
        )
    return out


@triton.jit
def _direct(points, rows, near, out, k, d, NEAR: tl.constexpr, VALUES: tl.constexpr):  # type: ignore[no-untyped-def]
    tiles = tl.cdiv(k, NEAR)
    point = (tl.program_id(0) // tiles).to(tl.int64)
    slot = (tl.program_id(0) % tiles) * NEAR + tl.arange(0, NEAR)
    which = tl.load(near + point * k + slot, mask=slot < k, other=0).to(tl.int64)
    total = tl.zeros((NEAR, VALUES), dtype=tl.float64)
    for start in range(0, d, VALUES):
        value = start + tl.arange(0, VALUES)
        inside = value < d
        mine = tl.load(points + point * d + value, mask=inside, other=0.0).to(tl.float64)
        others = tl.load(rows + which[:, None] * d + value[None, :], mask=inside[None, :], other=0.0).to(tl.float64)
        apart = mine[None, :] - others
        total += apart * apart
    tl.store(out + point * k + slot, tl.sum(total, 1), mask=slot < k)
