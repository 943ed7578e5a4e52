"""The two passes of the Shepard loss over the pairs of rows and landmarks in a plane, on a GPU. Needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.runtime import on_device_of

ROWS, OTHERS = 64, 64  # of a tile
SIZES = ["b", "m"]  # arguments for whose values no kernel of its own is compiled


def sums(y: Tensor, others: Tensor, distances: Tensor, ids: Tensor) -> Tensor:
    """Sums of d, d², x, x² and x d over all pairs, with the distances d in the map and x in the input."""
    b, m = len(y), others.shape[1]
    of_rows = y.new_empty(5, b)
    with on_device_of(y):
        _sums[(triton.cdiv(b, ROWS),)](
            y.contiguous(), others.contiguous(), distances, ids, of_rows, b, m, ROWS=ROWS, OTHERS=OTHERS
        )
    return of_rows.sum(1, dtype=torch.double)


def pull(y: Tensor, others: Tensor, distances: Tensor, ids: Tensor, slope: Tensor) -> Tensor:
    """Gradient by each row of a sum over the pairs with these slopes."""
    b, m = len(y), others.shape[1]
    pulls = y.new_empty(b, 2)
    with on_device_of(y):
        _pull[(triton.cdiv(b, ROWS),)](
            y.contiguous(), others.contiguous(), distances, ids, slope, pulls, b, m, ROWS=ROWS, OTHERS=OTHERS
        )
    return pulls


@triton.jit(do_not_specialize=SIZES)
def _sums(y, others, distances, ids, of_rows, b, m, ROWS: tl.constexpr, OTHERS: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < b
    x0 = tl.load(y + rows * 2, mask=inside, other=0.0)
    y0 = tl.load(y + rows * 2 + 1, mask=inside, other=0.0)
    at = tl.load(ids + rows, mask=inside, other=0).to(tl.int64) * m
    d1 = tl.zeros((ROWS,), tl.float32)
    d2 = tl.zeros((ROWS,), tl.float32)
    x1 = tl.zeros((ROWS,), tl.float32)
    x2 = tl.zeros((ROWS,), tl.float32)
    xd = tl.zeros((ROWS,), tl.float32)
    for start in range(0, m, OTHERS):
        columns = start + tl.arange(0, OTHERS)
        real = columns < m
        met = inside[:, None] & real[None, :]
        dx = x0[:, None] - tl.load(others + columns, mask=real, other=0.0)[None, :]
        dy = y0[:, None] - tl.load(others + m + columns, mask=real, other=0.0)[None, :]
        squared = tl.where(met, dx * dx + dy * dy, 0.0)
        d = tl.sqrt(squared)
        x = tl.load(distances + at[:, None] + columns[None, :], mask=met, other=0.0)
        d1 += tl.sum(d, 1)
        d2 += tl.sum(squared, 1)
        x1 += tl.sum(x, 1)
        x2 += tl.sum(x * x, 1)
        xd += tl.sum(x * d, 1)
    tl.store(of_rows + rows, d1, mask=inside)
    tl.store(of_rows + b + rows, d2, mask=inside)
    tl.store(of_rows + 2 * b + rows, x1, mask=inside)
    tl.store(of_rows + 3 * b + rows, x2, mask=inside)
    tl.store(of_rows + 4 * b + rows, xd, mask=inside)


@triton.jit(do_not_specialize=SIZES)
def _pull(  # type: ignore[no-untyped-def]
    y, others, distances, ids, slopes, pulls, b, m, ROWS: tl.constexpr, OTHERS: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < b
    x0 = tl.load(y + rows * 2, mask=inside, other=0.0)
    y0 = tl.load(y + rows * 2 + 1, mask=inside, other=0.0)
    at = tl.load(ids + rows, mask=inside, other=0).to(tl.int64) * m
    by_x, by_d, constant = tl.load(slopes), tl.load(slopes + 1), tl.load(slopes + 2)
    along_x = tl.zeros((ROWS, OTHERS), tl.float32)
    along_y = tl.zeros((ROWS, OTHERS), tl.float32)
    for start in range(0, m, OTHERS):
        columns = start + tl.arange(0, OTHERS)
        real = columns < m
        met = inside[:, None] & real[None, :]
        dx = x0[:, None] - tl.load(others + columns, mask=real, other=0.0)[None, :]
        dy = y0[:, None] - tl.load(others + m + columns, mask=real, other=0.0)[None, :]
        x = tl.load(distances + at[:, None] + columns[None, :], mask=met, other=0.0)
        # A row does not move away from itself.
        slope = tl.where(met, (by_x * x + constant) / tl.sqrt(dx * dx + dy * dy + 1e-24) - by_d, 0.0)
        along_x += slope * dx
        along_y += slope * dy
    tl.store(pulls + rows * 2, tl.sum(along_x, 1), mask=inside)
    tl.store(pulls + rows * 2 + 1, tl.sum(along_y, 1), mask=inside)
