"""Batch norm after a convolution: its statistics, itself with ReLU and pooling, and its gradients. Needs Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.encoder.triton.conv_forward import MULTIPROCESSORS, NOTHING, corner, room

ELEMENTS = 4096  # of a tile: four loads of 16 bytes by each of 128 threads
SUMMERS = 5 * MULTIPROCESSORS  # programs that sum up; as many as fit at once
MEAN, RATE, SCALE, SHIFT = (tl.constexpr(row) for row in range(4))  # of a table; the rate is 1/deviation
BETA, GAMMA, BIAS = (tl.constexpr(row) for row in range(3))  # of what total_gradients gives


class Norm(NamedTuple):
    """Batch norm in training, for each channel; the running statistics are updated in place."""

    gamma: Tensor  # (cout,)
    beta: Tensor  # (cout,)
    running_mean: Tensor  # (cout,)
    running_variance: Tensor  # (cout,)
    momentum: float
    eps: float


def statistics(sums: Tensor, bias: Tensor, norm: Norm, *, count: int) -> Tensor:
    """The table (4, cout) of MEAN, RATE, SCALE and SHIFT from the programs' sums (2, cout, programs), over ``count`` pixels."""
    _, cout, programs = sums.shape
    table = sums.new_empty(4, cout)
    _statistics[(cout,)](
        sums, bias, *norm[:4], table, programs, count, norm.momentum, norm.eps,
        COUT=cout, WIDE=triton.next_power_of_2(programs),
    )  # fmt: skip
    return table


def activate(z: Tensor, table: Tensor, *, pool: bool) -> tuple[Tensor, Tensor, Tensor]:
    """What a block gives, the z of each of its values, and, if pooled, their places in their windows."""
    _, h, w, cout = z.shape
    out, places = room(z, cout, pool=pool)
    peaks = torch.empty_like(out) if pool else z
    rows, tile = out.numel() // cout, _tile(cout, loads=4 if pool else 1)
    _activate[(triton.cdiv(rows, tile["ROWS"]),)](z, table, out, peaks, places, rows, H=h, W=w, **tile, POOLED=pool)
    return out, peaks, places


def total_gradients(peaks: Tensor, gradient: Tensor, table: Tensor) -> Tensor:
    """(3, cout): the gradients of BETA, GAMMA and BIAS, the last of which batch norm takes out again."""
    cout = gradient.shape[3]
    rows, tile = gradient.numel() // cout, _tile(cout, loads=2)
    sums = table.new_empty(3, cout, min(SUMMERS, triton.cdiv(rows, tile["ROWS"])))
    _sum_up[(sums.shape[2],)](peaks, gradient, table, sums, rows, **tile)
    return sums.sum(2)


def _tile(cout: int, loads: int) -> dict[str, int]:
    """As many pixels with all their channels as leave room for so many loads of each."""
    wide = triton.next_power_of_2(cout)
    return {"COUT": cout, "CHANNELS": wide, "ROWS": max(1, ELEMENTS // wide // loads)}


@triton.jit
def row_of(table, row: tl.constexpr, c, COUT: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + row * COUT + c, mask=c < COUT, other=0.0)[None, :]


@triton.jit(do_not_specialize=["programs", "count"])
def _statistics(  # type: ignore[no-untyped-def]
    sums, bias, gamma, beta, running_mean, running_variance, table, programs, count, momentum, eps,
    COUT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A channel's mean, 1/deviation, scale and shift; the bias only moves the running mean."""
    c, i = tl.program_id(0), tl.arange(0, WIDE)
    total = tl.load(sums + c * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    squares = tl.load(sums + (COUT + c) * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    exact = tl.sum(total, 0) / count
    variance = tl.maximum(tl.sum(squares, 0) / count - exact * exact, 0.0).to(tl.float32)
    mean, rate = exact.to(tl.float32), 1 / tl.sqrt(variance + eps)
    scale = rate * tl.load(gamma + c)
    tl.store(table + MEAN * COUT + c, mean)
    tl.store(table + RATE * COUT + c, rate)
    tl.store(table + SCALE * COUT + c, scale)
    tl.store(table + SHIFT * COUT + c, tl.load(beta + c) - mean * scale)
    unbiased = variance * (count / tl.maximum(count - 1, 1))
    tl.store(running_mean + c, tl.load(running_mean + c) * (1 - momentum) + (mean + tl.load(bias + c)) * momentum)
    tl.store(running_variance + c, tl.load(running_variance + c) * (1 - momentum) + unbiased * momentum)


@triton.jit(do_not_specialize=["rows"])
def _activate(  # type: ignore[no-untyped-def]
    z, table, out, peaks, places, rows, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr,
    ROWS: tl.constexpr, POOLED: tl.constexpr,
):  # fmt: skip
    """Batch norm, ReLU and pooling, which keeps the z of each window's first largest value, and its place, for the gradient."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    scale, shift = row_of(table, SCALE, c, COUT), row_of(table, SHIFT, c, COUT)
    to, real = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
    if POOLED:
        image, top, left = corner(r, H, W)
        at = ((image * H + top) * W + left)[:, None] * COUT + c[None, :]
        peak, place = tl.load(z + at, mask=real, other=0.0), tl.zeros((ROWS, CHANNELS), tl.int32)
        best = peak * scale + shift
        for i in tl.static_range(1, 4):
            inside = real & (top + i // 2 < H)[:, None] & (left + i % 2 < W)[:, None]
            other = tl.load(z + at + (i // 2 * W + i % 2) * COUT, mask=inside, other=0.0)
            value = tl.where(inside, other * scale + shift, float("-inf"))
            peak, place = tl.where(value > best, other, peak), tl.where(value > best, i, place)
            best = tl.maximum(value, best)
        tl.store(peaks + to, peak, mask=real)
        tl.store(places + to, tl.where(best > 0, place, NOTHING).to(tl.uint8), mask=real)
    else:
        best = tl.load(z + to, mask=real, other=0.0) * scale + shift
    tl.store(out + to, tl.maximum(best, 0.0).to(tl.bfloat16), mask=real)


@triton.jit(do_not_specialize=["rows"])
def _sum_up(  # type: ignore[no-untyped-def]
    peaks, gradient, table, sums, rows, COUT: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr
):
    """A program's sums of the gradient past ReLU: alone for beta, times the normalised z for gamma; and none for the bias."""
    program, programs, c = tl.program_id(0), tl.num_programs(0), tl.arange(0, CHANNELS)
    mean, scale, shift = row_of(table, MEAN, c, COUT), row_of(table, SCALE, c, COUT), row_of(table, SHIFT, c, COUT)
    total, moment = tl.zeros((ROWS, CHANNELS), tl.float32), tl.zeros((ROWS, CHANNELS), tl.float32)
    for tile in tl.range(program, tl.cdiv(rows, ROWS), programs):
        r = tile * ROWS + tl.arange(0, ROWS)
        at, real = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
        z, g = tl.load(peaks + at, mask=real, other=0.0), tl.load(gradient + at, mask=real, other=0.0).to(tl.float32)
        g = tl.where(z * scale + shift > 0, g, 0.0)
        total += g
        moment += g * (z - mean)
    to = sums + c * programs + program
    tl.store(to + BETA * COUT * programs, tl.sum(total, 0), mask=c < COUT)
    tl.store(to + GAMMA * COUT * programs, tl.sum(moment * row_of(table, RATE, c, COUT), 0), mask=c < COUT)
    tl.store(to + BIAS * COUT * programs, tl.zeros((CHANNELS,), tl.float32), mask=c < COUT)
