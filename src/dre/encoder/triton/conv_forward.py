"""Triton kernels for 3×3 convolutions as products of 2×2 windows with matrices, fused with ReLU, pooling or sums."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

# The products are over the windows of 2×2 output pixels that pooling joins. A window depends on a patch of 4×4 input pixels. A
# row of a patch is 4·cin adjacent numbers of an NHWC image. Times a matrix (4·cin, 2·cout), it gives its contribution to
# two adjacent output pixels. A number is thus read from the cache 4 times instead of 9, and the products are large enough for
# tensor cores, although a quarter of each matrix is zero. With few channels all 16 pixels of a patch make one row of a product.
MULTIPROCESSORS = 132  # of an H200; correct, but slower, on other GPUs
MAX_CHANNELS = 32  # output channels of a program, which are limited by its registers
INACTIVE = tl.constexpr(4)  # position of a window's maximum where ReLU is zero and no pixel has a gradient
WINDOWS = 64  # of a tile: the fewest rows of Hopper's large matrix instructions
BLOCK = 256  # elements of the matrices that a program writes
REDUCE_ROWS, REDUCE_ELEMENTS = 128, 16  # of a tile: two or four loads of 16 bytes
PLAIN, STATISTICS, RELU, POOL = (tl.constexpr(kind) for kind in range(4))  # what is fused with the convolution


class Tiling(NamedTuple):
    """How a convolution is divided into products; the fields are options of the kernels."""

    CIN: int
    COUT: int
    CHANNELS: int  # output channels of one product (a chunk), each for two adjacent pixels
    DEPTH: int  # inner dimension of a product, a power of 2
    PATCH_ROWS: int  # rows of a patch in one product: all 4, or 1

    @classmethod
    def of(cls, cin: int, cout: int) -> Tiling:
        patch_rows = 4 if cin <= 4 else 1
        depth = triton.next_power_of_2(4 * patch_rows * cin)
        channels = max(8, min(triton.next_power_of_2(cout), MAX_CHANNELS, 4096 // depth))
        return cls(cin, cout, channels, depth, patch_rows)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the matrices: chunks of channels, for each one matrix per row of a filter (3) or of a window (2), depth, width."""
        return triton.cdiv(self.COUT, self.CHANNELS), 2 if self.PATCH_ROWS == 4 else 3, self.DEPTH, 2 * self.CHANNELS


class Launch(NamedTuple):
    """The number of programs that share the tiles of windows, for each chunk of channels, and their compile options."""

    programs: int
    WINDOWS: int  # of a tile
    STAGES: int  # of the software pipeline
    num_warps: int

    def for_images(self, x: Tensor) -> Launch:
        """At most one program for each tile of the images x (b, h, w, channels)."""
        windows = x.shape[0] * ((x.shape[1] + 1) // 2) * ((x.shape[2] + 1) // 2)
        return self._replace(programs=min(triton.cdiv(windows, self.WINDOWS), self.programs))

    @property
    def options(self) -> dict[str, int]:
        return {"WINDOWS": self.WINDOWS, "STAGES": self.STAGES, "num_warps": self.num_warps}


def convolve(x: Tensor, matrices: Tensor, tiling: Tiling) -> Tensor:
    """Convolve x (b, h, w, cin) to (b, h, w, cout), without a bias."""
    out, nothing = empty_outputs(x, tiling.COUT, pool=False)
    _run(x, matrices, matrices, out, nothing, tiling, PLAIN)
    return out


def convolve_and_sum(x: Tensor, matrices: Tensor, tiling: Tiling) -> tuple[Tensor, Tensor]:
    """Convolve without a bias; also each program's sums of the values and of their squares, (2, cout, programs)."""
    out, _ = empty_outputs(x, tiling.COUT, pool=False)
    sums = x.new_empty(2, tiling.COUT, _launch_for(tiling, x).programs, dtype=torch.float32)
    _run(x, matrices, matrices, out, sums, tiling, STATISTICS)
    return out, sums


def convolve_and_activate(x: Tensor, matrices: Tensor, bias: Tensor, tiling: Tiling, *, pool: bool) -> tuple[Tensor, Tensor]:
    """Convolve, add the bias, apply ReLU and pool; also the positions of the maxima (empty without pooling)."""
    out, argmax = empty_outputs(x, tiling.COUT, pool=pool)
    _run(x, matrices, bias, out, argmax, tiling, POOL if pool else RELU)
    return out, argmax


def empty_outputs(x: Tensor, channels: int, *, pool: bool) -> tuple[Tensor, Tensor]:
    """Memory for the output of a block on x (b, h, w, c), and for the positions of the maxima (empty without pooling)."""
    b, h, w, _ = x.shape
    pooled = (b, (h + 1) // 2, (w + 1) // 2, channels)
    return x.new_empty(pooled if pool else (b, h, w, channels)), x.new_empty(pooled if pool else 0, dtype=torch.uint8)


def _run(x: Tensor, matrices: Tensor, bias: Tensor, out: Tensor, extra: Tensor, tiling: Tiling, kind: tl.constexpr) -> None:
    (b, h, w, _), launch = x.shape, _launch_for(tiling, x)
    grid = (len(matrices), launch.programs)
    _convolution[grid](x, matrices, bias, out, extra, b, H=h, W=w, **tiling._asdict(), KIND=kind.value, **launch.options)


def _launch_for(tiling: Tiling, x: Tensor) -> Launch:
    """As many programs as run at once; they need not load ahead, since others on the same multiprocessor hide their waits."""
    programs = MULTIPROCESSORS * (4 if tiling.DEPTH * tiling.CHANNELS <= 1024 else 2)
    return Launch(programs, WINDOWS, STAGES=1, num_warps=8 if tiling.DEPTH > 128 else 4).for_images(x)


def expand_filters(weight: Tensor, tiling: Tiling, x: Tensor, *, flip: bool) -> tuple[Tensor, Tensor]:
    """Expand filters (cout, cin, 3, 3) to the matrices of the products, in the type of x.

    With ``flip`` also returns the matrices of the flipped filters, which give the gradient of x; else an empty tensor.
    """
    back = Tiling.of(tiling.COUT, tiling.CIN)
    matrices, flipped = x.new_empty(tiling.shape), x.new_empty(back.shape if flip else 0)
    n = matrices.numel() + flipped.numel()
    _expand_filters[(triton.cdiv(n, BLOCK),)](
        weight.contiguous(), matrices, flipped, matrices.numel(), n, *tiling, back.CHANNELS, back.DEPTH, back.PATCH_ROWS,
        BLOCK=BLOCK,
    )  # fmt: skip
    return matrices, flipped


def reduce_filter_gradient(d_matrices: Tensor, tiling: Tiling) -> Tensor:
    """The gradient of the filters (cout, cin, 3, 3) from the programs' gradients of the matrices (programs, *tiling.shape)."""
    d_weight = d_matrices.new_empty(tiling.COUT, tiling.CIN, 3, 3, dtype=torch.float32)
    _reduce_filter_gradient[(triton.cdiv(d_weight.numel(), REDUCE_ELEMENTS),)](
        d_matrices, d_weight, len(d_matrices), d_matrices[0].numel(), **tiling._asdict(),
        ELEMENTS=REDUCE_ELEMENTS, ROWS=REDUCE_ROWS,
    )  # fmt: skip
    return d_weight


@triton.jit
def window_corner(window, H: tl.constexpr, W: tl.constexpr):  # type: ignore[no-untyped-def]
    """Image, row and column of a window's first pixel."""
    ACROSS: tl.constexpr = (W + 1) // 2
    EACH: tl.constexpr = (H + 1) // 2 * ACROSS
    return window // EACH, window % EACH // ACROSS * 2, window % ACROSS * 2


@triton.jit
def load_patch(  # type: ignore[no-untyped-def]
    x, b, image, top, left, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, DEPTH: tl.constexpr, PATCH_ROWS: tl.constexpr
):
    """One row of the patch, the one above ``top``, or all four rows; it starts one column left of ``left``."""
    k = tl.arange(0, DEPTH)
    row, column = (top - 1)[:, None] + (k // (4 * CIN))[None, :], (left - 1)[:, None] + (k // CIN % 4)[None, :]
    valid = (image < b)[:, None] & (row >= 0) & (row < H) & (column >= 0) & (column < W) & (k < 4 * PATCH_ROWS * CIN)[None, :]
    at = ((image[:, None] * H + row) * W + (left - 1)[:, None]) * CIN + (k % (4 * CIN))[None, :]
    return tl.load(x + at, mask=valid, other=0.0)


@triton.jit
def pixel_pairs(  # type: ignore[no-untyped-def]
    b, image, top, left, n, c, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr
):
    """Offsets of the upper two pixels of windows in images of cout channels, and masks of the upper and lower two."""
    at = ((image * H + top) * W + left)[:, None] * COUT + (n // CHANNELS * COUT + c)[None, :]
    valid = (image < b)[:, None] & (left[:, None] + (n // CHANNELS)[None, :] < W) & (c < COUT)[None, :]
    return at, valid, valid & (top + 1 < H)[:, None]


@triton.jit
def _multiply(  # type: ignore[no-untyped-def]
    x, b, image, top, left, first, second, third, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, DEPTH: tl.constexpr,
    PATCH_ROWS: tl.constexpr,
):  # fmt: skip
    """The upper two pixels of windows, and the lower two."""
    above = load_patch(x, b, image, top, left, H, W, CIN, DEPTH, PATCH_ROWS)
    if PATCH_ROWS == 4:
        upper, lower = tl.dot(above, first), tl.dot(above, second)
    else:
        here = load_patch(x, b, image, top + 1, left, H, W, CIN, DEPTH, PATCH_ROWS)
        there = load_patch(x, b, image, top + 2, left, H, W, CIN, DEPTH, PATCH_ROWS)
        below = load_patch(x, b, image, top + 3, left, H, W, CIN, DEPTH, PATCH_ROWS)
        upper, lower = tl.dot(here, second, tl.dot(above, first)), tl.dot(here, first)
        upper, lower = tl.dot(there, third, upper), tl.dot(below, third, tl.dot(there, second, lower))
    return upper, lower


@triton.jit
def _window_max(upper, lower, WINDOWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The first maximum of each window's four pixels, and its position."""
    best, right = tl.split(tl.permute(tl.reshape(upper, (WINDOWS, 2, CHANNELS)), (0, 2, 1)))
    lower_left, lower_right = tl.split(tl.permute(tl.reshape(lower, (WINDOWS, 2, CHANNELS)), (0, 2, 1)))
    at_max, best = tl.where(right > best, 1, 0), tl.maximum(right, best)
    at_max, best = tl.where(lower_left > best, 2, at_max), tl.maximum(lower_left, best)
    at_max, best = tl.where(lower_right > best, 3, at_max), tl.maximum(lower_right, best)
    return best, at_max


@triton.jit(do_not_specialize=["b"])
def _convolution(  # type: ignore[no-untyped-def]
    x, matrices, bias, out, extra, b, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, COUT: tl.constexpr,
    CHANNELS: tl.constexpr, DEPTH: tl.constexpr, PATCH_ROWS: tl.constexpr, KIND: tl.constexpr, WINDOWS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """The programs of each chunk of channels share the tiles of windows."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CHANNELS)
    c, channel = chunk * CHANNELS + n % CHANNELS, chunk * CHANNELS + tl.arange(0, CHANNELS)
    SLOTS: tl.constexpr = 2 if PATCH_ROWS == 4 else 3
    SIZE: tl.constexpr = DEPTH * 2 * CHANNELS
    matrix = matrices + chunk * SLOTS * SIZE + tl.arange(0, DEPTH)[:, None] * 2 * CHANNELS + n[None, :]
    first, second, third = tl.load(matrix), tl.load(matrix + SIZE), tl.load(matrix + (SLOTS - 1) * SIZE)
    if KIND >= RELU:
        shift = tl.load(bias + c, mask=c < COUT, other=0.0)[None, :]
    total, squares = tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32), tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32)
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, WINDOWS), tl.num_programs(1), num_stages=STAGES):
        window = tile * WINDOWS + tl.arange(0, WINDOWS)
        image, top, left = window_corner(window, H, W)
        upper, lower = _multiply(x, b, image, top, left, first, second, third, H, W, CIN, DEPTH, PATCH_ROWS)
        at, valid, valid_lower = pixel_pairs(b, image, top, left, n, c, H, W, COUT, CHANNELS)
        if KIND == STATISTICS:
            masked, masked_lower = tl.where(valid, upper, 0.0), tl.where(valid_lower, lower, 0.0)
            total += masked + masked_lower
            squares += masked * masked + masked_lower * masked_lower
        if KIND == RELU:
            upper, lower = tl.maximum(upper + shift, 0.0), tl.maximum(lower + shift, 0.0)
        if KIND == POOL:
            upper, lower = tl.where(valid, upper + shift, 0.0), tl.where(valid_lower, lower + shift, 0.0)
            best, at_max = _window_max(upper, lower, WINDOWS, CHANNELS)
            pooled, exists = window[:, None] * COUT + channel[None, :], (window < windows)[:, None] & (channel < COUT)[None, :]
            tl.store(out + pooled, tl.maximum(best, 0.0).to(tl.bfloat16), mask=exists)
            tl.store(extra + pooled, tl.where(best > 0, at_max, INACTIVE).to(tl.uint8), mask=exists)
        else:
            tl.store(out + at, upper.to(tl.bfloat16), mask=valid)
            tl.store(out + W * COUT + at, lower.to(tl.bfloat16), mask=valid_lower)
    if KIND == STATISTICS:
        to = extra + channel * tl.num_programs(1) + program
        tl.store(to, tl.sum(tl.reshape(tl.sum(total, 0), (2, CHANNELS)), 0), mask=channel < COUT)
        squares = tl.sum(tl.reshape(tl.sum(squares, 0), (2, CHANNELS)), 0)
        tl.store(to + COUT * tl.num_programs(1), squares, mask=channel < COUT)


@triton.jit(do_not_specialize=range(3, 13))
def _expand_filters(  # type: ignore[no-untyped-def]
    weight, matrices, flipped, n_matrices, n, cin, cout, channels, depth, patch_rows,
    back_channels, back_depth, back_patch_rows, BLOCK: tl.constexpr,
):  # fmt: skip
    """The matrices of the filters and, after them, those of the flipped filters."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _expand_into(weight, matrices, i, i < n_matrices, cin, cout, channels, depth, patch_rows, False)
    j, behind = i - n_matrices, (i >= n_matrices) & (i < n)
    _expand_into(weight, flipped, j, behind, cout, cin, back_channels, back_depth, back_patch_rows, True)


@triton.jit
def _expand_into(weight, matrices, i, mask, cin, cout, channels, depth, patch_rows, FLIP: tl.constexpr):  # type: ignore[no-untyped-def]
    slots = tl.where(patch_rows == 4, 2, 3)
    k, slot, chunk = i // (2 * channels) % depth, i // (2 * channels * depth) % slots, i // (2 * channels * depth * slots)
    c_in, c_out, column = k % cin, chunk * channels + i % channels, k // cin % 4 - i // channels % 2
    row = tl.where(patch_rows == 4, k // (4 * cin) - slot, slot)
    valid = mask & (k < 4 * patch_rows * cin) & (c_out < cout) & (row >= 0) & (row < 3) & (column >= 0) & (column < 3)
    at = (c_in * cout + c_out) * 9 + 8 - row * 3 - column if FLIP else (c_out * cin + c_in) * 9 + row * 3 + column
    tl.store(matrices + i, tl.load(weight + at, mask=valid, other=0.0), mask=mask)


@triton.jit(do_not_specialize=["programs"])
def _reduce_filter_gradient(  # type: ignore[no-untyped-def]
    d_matrices,
    d_weight,
    programs,
    size,
    CIN,
    COUT,
    CHANNELS,
    DEPTH,
    PATCH_ROWS: tl.constexpr,
    ELEMENTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Sums over all programs, and over the entries of a matrix that hold the same weight, one for each output pixel."""
    i = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    c_out, c_in, column, row = i % COUT, i // COUT % CIN, i // (COUT * CIN) % 3, i // (COUT * CIN * 3)
    total = tl.zeros((ROWS, ELEMENTS), tl.float32)
    for start in range(0, programs, ROWS):
        program = start + tl.arange(0, ROWS)
        mask = (program < programs)[:, None] & (row < 3)[None, :]
        for pixel in tl.static_range(4 if PATCH_ROWS == 4 else 2):
            down, right = pixel // 2, pixel % 2
            slot, k = (down, (row + down) * 4 + column + right) if PATCH_ROWS == 4 else (row, column + right)
            at = (c_out // CHANNELS * (2 if PATCH_ROWS == 4 else 3) + slot) * DEPTH + k * CIN + c_in
            at = at * 2 * CHANNELS + right * CHANNELS + c_out % CHANNELS
            total += tl.load(d_matrices + program[:, None] * size + at[None, :], mask=mask, other=0.0)
    tl.store(d_weight + (c_out * CIN + c_in) * 9 + row * 3 + column, tl.sum(total, 0), mask=row < 3)
