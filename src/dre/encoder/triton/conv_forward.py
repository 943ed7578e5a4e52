"""Convolutions as products of windows with matrices, fused with what follows them. Needs Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

# The products are over windows of 2×2 pixels, those that pooling joins. A window sees 4×4 pixels, and a row of these is 4·cin
# adjacent numbers of an NHWC image: times a matrix (4·cin, 2·cout), it gives what that row adds to two adjacent pixels of the
# output. So a number is read from cache 4 times rather than 9, and the products are large enough for the matrix units, though a
# quarter of each is with zeros. With few channels, all 16 pixels make one row of a product instead of four.
MULTIPROCESSORS = 132  # an H200's; any other number is only slower
MOST_CHANNELS = 32  # of the output in one program, for the sake of registers
NOTHING = tl.constexpr(4)  # the place of a window's largest value where ReLU leaves none


class Cut(NamedTuple):
    """How a convolution is cut into products, by the names that kernels have for it."""

    CIN: int
    COUT: int
    CHANNELS: int  # of the output in one product, which is for two adjacent pixels of each: a chunk
    DEPTH: int  # of a product, a power of 2
    TALL: int  # rows of pixels in one product: all 4 that a window sees, or 1

    @classmethod
    def of(cls, cin: int, cout: int) -> Cut:
        tall = 4 if cin <= 4 else 1
        depth = triton.next_power_of_2(4 * tall * cin)
        channels = max(8, min(triton.next_power_of_2(cout), MOST_CHANNELS, 4096 // depth))
        return cls(cin, cout, channels, depth, tall)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Chunks of channels, for each as many matrices as a filter has rows; or as a window has rows, if these are tall."""
        return triton.cdiv(self.COUT, self.CHANNELS), 2 if self.TALL == 4 else 3, self.DEPTH, 2 * self.CHANNELS


class Launch(NamedTuple):
    """How many programs go through the tiles of windows, for each chunk of channels, and what they are compiled with."""

    programs: int
    WINDOWS: int  # of a tile
    STAGES: int  # tiles whose loads are under way at once
    num_warps: int

    def over(self, x: Tensor) -> Launch:
        """With no more programs than there are tiles in the images x (b, h, w, channels)."""
        windows = x.shape[0] * ((x.shape[1] + 1) // 2) * ((x.shape[2] + 1) // 2)
        return self._replace(programs=min(triton.cdiv(windows, self.WINDOWS), self.programs))

    @property
    def options(self) -> dict[str, int]:
        return {"WINDOWS": self.WINDOWS, "STAGES": self.STAGES, "num_warps": self.num_warps}


def room(x: Tensor, channels: int, *, pool: bool) -> tuple[Tensor, Tensor]:
    """For what a block gives for x (b, h, w, c), and for the places of pooled values in their windows, if it pools."""
    b, h, w, _ = x.shape
    pooled = (b, (h + 1) // 2, (w + 1) // 2, channels)
    return x.new_empty(pooled if pool else (b, h, w, channels)), x.new_empty(pooled if pool else 0, dtype=torch.uint8)


@triton.jit
def corner(window, H: tl.constexpr, W: tl.constexpr):  # type: ignore[no-untyped-def]
    """Image, row and column of a window's first pixel."""
    ACROSS: tl.constexpr = (W + 1) // 2
    EACH: tl.constexpr = (H + 1) // 2 * ACROSS
    return window // EACH, window % EACH // ACROSS * 2, window % ACROSS * 2


@triton.jit
def patch(  # type: ignore[no-untyped-def]
    x, b, image, top, left, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, DEPTH: tl.constexpr, TALL: tl.constexpr
):
    """Four pixels of the row above ``top``, from the column before ``left``; or of four rows."""
    k = tl.arange(0, DEPTH)
    row, column = (top - 1)[:, None] + (k // (4 * CIN))[None, :], (left - 1)[:, None] + (k // CIN % 4)[None, :]
    real = (image < b)[:, None] & (row >= 0) & (row < H) & (column >= 0) & (column < W) & (k < 4 * TALL * CIN)[None, :]
    at = ((image[:, None] * H + row) * W + (left - 1)[:, None]) * CIN + (k % (4 * CIN))[None, :]
    return tl.load(x + at, mask=real, other=0.0)


@triton.jit
def pixel_pairs(  # type: ignore[no-untyped-def]
    b, image, top, left, n, c, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr
):
    """Where the upper two pixels of windows are in an image of cout channels, which exist, and which of the lower two."""
    at = ((image * H + top) * W + left)[:, None] * COUT + (n // CHANNELS * COUT + c)[None, :]
    real = (image < b)[:, None] & (left[:, None] + (n // CHANNELS)[None, :] < W) & (c < COUT)[None, :]
    return at, real, real & (top + 1 < H)[:, None]


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


WINDOWS = 64  # of a tile: the fewest rows that Hopper's larger matrix instructions take
PLAIN, STATISTICS, RELU, POOL = (tl.constexpr(kind) for kind in range(4))  # what follows a convolution


def convolve(x: Tensor, matrices: Tensor, cut: Cut) -> Tensor:
    """(b, h, w, cout), without a bias."""
    out, nothing = room(x, cut.COUT, pool=False)
    _launch(x, matrices, matrices, out, nothing, cut, PLAIN)
    return out


def convolve_and_sum(x: Tensor, matrices: Tensor, cut: Cut) -> tuple[Tensor, Tensor]:
    """(b, h, w, cout) without a bias, and the sums of each program, (2, cout, programs): of values and of their squares."""
    out, _ = room(x, cut.COUT, pool=False)
    sums = x.new_empty(2, cut.COUT, _plan(cut, x).programs, dtype=torch.float32)
    _launch(x, matrices, matrices, out, sums, cut, STATISTICS)
    return out, sums


def convolve_and_activate(x: Tensor, matrices: Tensor, bias: Tensor, cut: Cut, *, pool: bool) -> tuple[Tensor, Tensor]:
    """ReLU of the convolution and, if it is pooled, the places of the largest values in their windows."""
    out, places = room(x, cut.COUT, pool=pool)
    _launch(x, matrices, bias, out, places, cut, POOL if pool else RELU)
    return out, places


def _plan(cut: Cut, x: Tensor) -> Launch:
    """Nothing is loaded ahead: programs that share a multiprocessor hide each other's waits. As many as fit at once."""
    programs = MULTIPROCESSORS * (4 if cut.DEPTH * cut.CHANNELS <= 1024 else 2)
    return Launch(programs, WINDOWS, STAGES=1, num_warps=8 if cut.DEPTH > 128 else 4).over(x)


def _launch(x: Tensor, matrices: Tensor, bias: Tensor, out: Tensor, extra: Tensor, cut: Cut, kind: tl.constexpr) -> None:
    (b, h, w, _), plan = x.shape, _plan(cut, x)
    grid = (len(matrices), plan.programs)
    _convolution[grid](x, matrices, bias, out, extra, b, H=h, W=w, **cut._asdict(), KIND=kind.value, **plan.options)


@triton.jit
def _multiply(  # type: ignore[no-untyped-def]
    x, b, image, top, left, first, second, third, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, DEPTH: tl.constexpr,
    TALL: tl.constexpr,
):  # fmt: skip
    """The upper two pixels of windows, and the lower two."""
    above = patch(x, b, image, top, left, H, W, CIN, DEPTH, TALL)
    if TALL == 4:
        upper, lower = tl.dot(above, first), tl.dot(above, second)
    else:
        here = patch(x, b, image, top + 1, left, H, W, CIN, DEPTH, TALL)
        there = patch(x, b, image, top + 2, left, H, W, CIN, DEPTH, TALL)
        below = patch(x, b, image, top + 3, left, H, W, CIN, DEPTH, TALL)
        upper, lower = tl.dot(here, second, tl.dot(above, first)), tl.dot(here, first)
        upper, lower = tl.dot(there, third, upper), tl.dot(below, third, tl.dot(there, second, lower))
    return upper, lower


@triton.jit
def _largest(upper, lower, WINDOWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The first largest of each window's four pixels, and its place."""
    best, right = tl.split(tl.permute(tl.reshape(upper, (WINDOWS, 2, CHANNELS)), (0, 2, 1)))
    lower_left, lower_right = tl.split(tl.permute(tl.reshape(lower, (WINDOWS, 2, CHANNELS)), (0, 2, 1)))
    place, best = tl.where(right > best, 1, 0), tl.maximum(right, best)
    place, best = tl.where(lower_left > best, 2, place), tl.maximum(lower_left, best)
    place, best = tl.where(lower_right > best, 3, place), tl.maximum(lower_right, best)
    return best, place


@triton.jit(do_not_specialize=["b"])
def _convolution(  # type: ignore[no-untyped-def]
    x, matrices, bias, out, extra, b, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, COUT: tl.constexpr,
    CHANNELS: tl.constexpr, DEPTH: tl.constexpr, TALL: tl.constexpr, KIND: tl.constexpr, WINDOWS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Programs for each chunk of channels go through the tiles of windows."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CHANNELS)
    c, channel = chunk * CHANNELS + n % CHANNELS, chunk * CHANNELS + tl.arange(0, CHANNELS)
    SLOTS: tl.constexpr = 2 if TALL == 4 else 3
    SIZE: tl.constexpr = DEPTH * 2 * CHANNELS
    matrix = matrices + chunk * SLOTS * SIZE + tl.arange(0, DEPTH)[:, None] * 2 * CHANNELS + n[None, :]
    first, second, third = tl.load(matrix), tl.load(matrix + SIZE), tl.load(matrix + (SLOTS - 1) * SIZE)
    if KIND >= RELU:
        shift = tl.load(bias + c, mask=c < COUT, other=0.0)[None, :]
    total, squares = tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32), tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32)
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, WINDOWS), tl.num_programs(1), num_stages=STAGES):
        window = tile * WINDOWS + tl.arange(0, WINDOWS)
        image, top, left = corner(window, H, W)
        upper, lower = _multiply(x, b, image, top, left, first, second, third, H, W, CIN, DEPTH, TALL)
        at, real, real_lower = pixel_pairs(b, image, top, left, n, c, H, W, COUT, CHANNELS)
        if KIND == STATISTICS:
            seen, seen_lower = tl.where(real, upper, 0.0), tl.where(real_lower, lower, 0.0)
            total += seen + seen_lower
            squares += seen * seen + seen_lower * seen_lower
        if KIND == RELU:
            upper, lower = tl.maximum(upper + shift, 0.0), tl.maximum(lower + shift, 0.0)
        if KIND == POOL:
            upper, lower = tl.where(real, upper + shift, 0.0), tl.where(real_lower, lower + shift, 0.0)
            best, place = _largest(upper, lower, WINDOWS, CHANNELS)
            pooled, exists = window[:, None] * COUT + channel[None, :], (window < windows)[:, None] & (channel < COUT)[None, :]
            tl.store(out + pooled, tl.maximum(best, 0.0).to(tl.bfloat16), mask=exists)
            tl.store(extra + pooled, tl.where(best > 0, place, NOTHING).to(tl.uint8), mask=exists)
        else:
            tl.store(out + at, upper.to(tl.bfloat16), mask=real)
            tl.store(out + W * COUT + at, lower.to(tl.bfloat16), mask=real_lower)
    if KIND == STATISTICS:
        to = extra + channel * tl.num_programs(1) + program
        tl.store(to, tl.sum(tl.reshape(tl.sum(total, 0), (2, CHANNELS)), 0), mask=channel < COUT)
        squares = tl.sum(tl.reshape(tl.sum(squares, 0), (2, CHANNELS)), 0)
        tl.store(to + COUT * tl.num_programs(1), squares, mask=channel < COUT)
