"""Convolutions, and what follows them before their results leave the registers: sums, or ReLU and pooling. Needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.gpu.conv_windows import MULTIPROCESSORS, NOTHING, Cut, Launch, corner, patch, pixel_pairs, room

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
