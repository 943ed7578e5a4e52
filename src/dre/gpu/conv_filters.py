"""Filters as the matrices that windows are multiplied with, and the gradient of these as that of the filters. Needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.gpu.conv_windows import Cut

BLOCK = 256  # elements of the matrices that a program fills
FOLD_ROWS, FOLD_ELEMENTS = 128, 16  # of a tile, with two or four loads of 16 bytes


def spread(weight: Tensor, cut: Cut, x: Tensor, *, flip: bool) -> tuple[Tensor, Tensor]:
    """Matrices of x's type for filters (cout, cin, 3, 3), and if asked for those that give the gradient of x, else none."""
    back = Cut.of(cut.COUT, cut.CIN)
    matrices, flipped = x.new_empty(cut.shape), x.new_empty(back.shape if flip else 0)
    n = matrices.numel() + flipped.numel()
    _spread[(triton.cdiv(n, BLOCK),)](
        weight.contiguous(), matrices, flipped, matrices.numel(), n, *cut, back.CHANNELS, back.DEPTH, back.TALL, BLOCK=BLOCK
    )
    return matrices, flipped


def fold(parts: Tensor, cut: Cut) -> Tensor:
    """The filters' gradient from that of the matrices, in parts (programs, *cut.shape)."""
    d_weight = parts.new_empty(cut.COUT, cut.CIN, 3, 3, dtype=torch.float32)
    _fold[(triton.cdiv(d_weight.numel(), FOLD_ELEMENTS),)](
        parts, d_weight, len(parts), parts[0].numel(), **cut._asdict(), ELEMENTS=FOLD_ELEMENTS, ROWS=FOLD_ROWS
    )
    return d_weight


@triton.jit
def _spread_over(weight, matrices, i, mask, cin, cout, channels, depth, tall, FLIP: tl.constexpr):  # type: ignore[no-untyped-def]
    slots = tl.where(tall == 4, 2, 3)
    k, slot, chunk = i // (2 * channels) % depth, i // (2 * channels * depth) % slots, i // (2 * channels * depth * slots)
    c_in, c_out, column = k % cin, chunk * channels + i % channels, k // cin % 4 - i // channels % 2
    row = tl.where(tall == 4, k // (4 * cin) - slot, slot)
    real = mask & (k < 4 * tall * cin) & (c_out < cout) & (row >= 0) & (row < 3) & (column >= 0) & (column < 3)
    at = (c_in * cout + c_out) * 9 + 8 - row * 3 - column if FLIP else (c_out * cin + c_in) * 9 + row * 3 + column
    tl.store(matrices + i, tl.load(weight + at, mask=real, other=0.0), mask=mask)


@triton.jit(do_not_specialize=range(3, 13))
def _spread(  # type: ignore[no-untyped-def]
    weight, matrices, flipped, n_matrices, n, cin, cout, channels, depth, tall, back_channels, back_depth, back_tall,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The matrices for windows and, behind these, those for the gradient of x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _spread_over(weight, matrices, i, i < n_matrices, cin, cout, channels, depth, tall, False)
    j, behind = i - n_matrices, (i >= n_matrices) & (i < n)
    _spread_over(weight, flipped, j, behind, cout, cin, back_channels, back_depth, back_tall, True)


@triton.jit(do_not_specialize=["programs"])
def _fold(  # type: ignore[no-untyped-def]
    parts, d_weight, programs, size, CIN, COUT, CHANNELS, DEPTH, TALL: tl.constexpr, ELEMENTS: tl.constexpr, ROWS: tl.constexpr
):
    """The sum of all programs' matrices, and in these of all places of a filter's weight, one for each pixel it leads to."""
    i = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    c_out, c_in, column, row = i % COUT, i // COUT % CIN, i // (COUT * CIN) % 3, i // (COUT * CIN * 3)
    total = tl.zeros((ROWS, ELEMENTS), tl.float32)
    for start in range(0, programs, ROWS):
        program = start + tl.arange(0, ROWS)
        mask = (program < programs)[:, None] & (row < 3)[None, :]
        for pixel in tl.static_range(4 if TALL == 4 else 2):
            down, right = pixel // 2, pixel % 2
            slot, k = (down, (row + down) * 4 + column + right) if TALL == 4 else (row, column + right)
            at = (c_out // CHANNELS * (2 if TALL == 4 else 3) + slot) * DEPTH + k * CIN + c_in
            at = at * 2 * CHANNELS + right * CHANNELS + c_out % CHANNELS
            total += tl.load(parts + program[:, None] * size + at[None, :], mask=mask, other=0.0)
    tl.store(d_weight + (c_out * CIN + c_in) * 9 + row * 3 + column, tl.sum(total, 0), mask=row < 3)
