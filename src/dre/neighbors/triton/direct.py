"""Triton kernel: squared distances summed over differences in float64, without copying the rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.runtime import on_device_of

NEAR, VALUES = 8, 128  # neighbors and values of a tile


def direct(points: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
    """Squared distances (m, k) in float64 from points (m, d) to the rows ``ids`` (m, k)."""
    (m, k), d = ids.shape, rows.shape[1]
    out = torch.empty(m, k, dtype=torch.double, device=rows.device)
    with on_device_of(rows):
        _direct[(m * triton.cdiv(k, NEAR),)](  # one axis only: CUDA limits the others to 65,535 programs
            points.contiguous(), rows.contiguous(), ids.contiguous(), out, k, d, NEAR=NEAR, VALUES=VALUES
        )
    return out


@triton.jit(do_not_specialize=["k", "d"])  # else compiled for each size
def _direct(points, rows, ids, out, k, d, NEAR: tl.constexpr, VALUES: tl.constexpr):  # type: ignore[no-untyped-def]
    tiles = tl.cdiv(k, NEAR)
    point = (tl.program_id(0) // tiles).to(tl.int64)
    slot = (tl.program_id(0) % tiles) * NEAR + tl.arange(0, NEAR)
    row = tl.load(ids + point * k + slot, mask=slot < k, other=0).to(tl.int64)
    total = tl.zeros((NEAR, VALUES), dtype=tl.float64)
    for start in range(0, d, VALUES):
        column = start + tl.arange(0, VALUES)
        inside = column < d
        a = tl.load(points + point * d + column, mask=inside, other=0.0).to(tl.float64)
        b = tl.load(rows + row[:, None] * d + column[None, :], mask=inside[None, :], other=0.0).to(tl.float64)
        difference = a[None, :] - b
        total += difference * difference
    tl.store(out + point * k + slot, tl.sum(total, 1), mask=slot < k)
