"""Triton kernels for batch norm after a convolution: its statistics, its application with ReLU and pooling, its gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.encoder.triton.conv_forward import INACTIVE, MULTIPROCESSORS, empty_outputs, window_corner

ELEMENTS = 4096  # of a tile: four loads of 16 bytes by each of 128 threads
SUM_PROGRAMS = 5 * MULTIPROCESSORS  # programs that compute sums: as many as run at once
MEAN, INV_STD, SCALE, SHIFT = (tl.constexpr(row) for row in range(4))  # rows of the table
BETA, GAMMA, BIAS = (tl.constexpr(row) for row in range(3))  # rows of what norm_gradients returns


class BatchNormParameters(NamedTuple):
    """Batch norm in training; the running statistics are updated in place."""

    gamma: Tensor  # (cout,)
    beta: Tensor  # (cout,)
    running_mean: Tensor  # (cout,)
    running_var: Tensor  # (cout,)
    momentum: float
    eps: float


def batch_statistics(sums: Tensor, bias: Tensor, norm: BatchNormParameters, *, count: int) -> Tensor:
    """The table (4, cout) of MEAN, INV_STD, SCALE, SHIFT, from the programs' sums (2, cout, programs) over ``count`` pixels."""
    _, cout, programs = sums.shape
    table = sums.new_empty(4, cout)
    _batch_statistics[(cout,)](
        sums, bias, *norm[:4], table, programs, count, norm.momentum, norm.eps,
        COUT=cout, WIDTH=triton.next_power_of_2(programs),
    )  # fmt: skip
    return table


def activate(z: Tensor, table: Tensor, *, pool: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize, apply ReLU and pool.

    Returns the output, the z of each output value, and the position of each maximum in its window (empty without pooling).
    """
    _, h, w, cout = z.shape
    out, argmax = empty_outputs(z, cout, pool=pool)
    z_max = torch.empty_like(out) if pool else z
    rows, tile = out.numel() // cout, _tile(cout, loads=4 if pool else 1)
    _activate[(triton.cdiv(rows, tile["ROWS"]),)](z, table, out, z_max, argmax, rows, H=h, W=w, **tile, POOLED=pool)
    return out, z_max, argmax


def norm_gradients(z_max: Tensor, gradient: Tensor, table: Tensor) -> Tensor:
    """The gradients (3, cout) of BETA, GAMMA and BIAS; that of the bias is zero, because batch norm subtracts it again."""
    cout = gradient.shape[3]
    rows, tile = gradient.numel() // cout, _tile(cout, loads=2)
    sums = table.new_empty(3, cout, min(SUM_PROGRAMS, triton.cdiv(rows, tile["ROWS"])))
    _norm_gradients[(sums.shape[2],)](z_max, gradient, table, sums, rows, **tile)
    return sums.sum(2)


def _tile(cout: int, loads: int) -> dict[str, int]:
    """Options of a kernel: as many pixels with all their channels as registers hold with so many loads of each."""
    width = triton.next_power_of_2(cout)
    return {"COUT": cout, "CHANNELS": width, "ROWS": max(1, ELEMENTS // width // loads)}


@triton.jit
def load_row(table, row: tl.constexpr, c, COUT: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + row * COUT + c, mask=c < COUT, other=0.0)[None, :]


@triton.jit(do_not_specialize=["programs", "count"])
def _batch_statistics(  # type: ignore[no-untyped-def]
    sums, bias, gamma, beta, running_mean, running_var, table, programs, count, momentum, eps,
    COUT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The mean, 1/std, scale and shift of one channel; the bias only moves the running mean."""
    c, i = tl.program_id(0), tl.arange(0, WIDTH)
    total = tl.load(sums + c * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    squares = tl.load(sums + (COUT + c) * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    mean64 = tl.sum(total, 0) / count
    variance = tl.maximum(tl.sum(squares, 0) / count - mean64 * mean64, 0.0).to(tl.float32)
    mean, inv_std = mean64.to(tl.float32), 1 / tl.sqrt(variance + eps)
    scale = inv_std * tl.load(gamma + c)
    tl.store(table + MEAN * COUT + c, mean)
    tl.store(table + INV_STD * COUT + c, inv_std)
    tl.store(table + SCALE * COUT + c, scale)
    tl.store(table + SHIFT * COUT + c, tl.load(beta + c) - mean * scale)
    unbiased = variance * (count / tl.maximum(count - 1, 1))
    tl.store(running_mean + c, tl.load(running_mean + c) * (1 - momentum) + (mean + tl.load(bias + c)) * momentum)
    tl.store(running_var + c, tl.load(running_var + c) * (1 - momentum) + unbiased * momentum)


@triton.jit(do_not_specialize=["rows"])
def _activate(  # type: ignore[no-untyped-def]
    z, table, out, z_max, argmax, rows, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr,
    ROWS: tl.constexpr, POOLED: tl.constexpr,
):  # fmt: skip
    """Batch norm, ReLU and pooling; stores the z and the position of each window's first maximum for the gradient."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    scale, shift = load_row(table, SCALE, c, COUT), load_row(table, SHIFT, c, COUT)
    to, valid = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
    if POOLED:
        image, top, left = window_corner(r, H, W)
        at = ((image * H + top) * W + left)[:, None] * COUT + c[None, :]
        z_best, at_max = tl.load(z + at, mask=valid, other=0.0), tl.zeros((ROWS, CHANNELS), tl.int32)
        best = z_best * scale + shift
        for i in tl.static_range(1, 4):
            inside = valid & (top + i // 2 < H)[:, None] & (left + i % 2 < W)[:, None]
            other = tl.load(z + at + (i // 2 * W + i % 2) * COUT, mask=inside, other=0.0)
            value = tl.where(inside, other * scale + shift, float("-inf"))
            z_best, at_max = tl.where(value > best, other, z_best), tl.where(value > best, i, at_max)
            best = tl.maximum(value, best)
        tl.store(z_max + to, z_best, mask=valid)
        tl.store(argmax + to, tl.where(best > 0, at_max, INACTIVE).to(tl.uint8), mask=valid)
    else:
        best = tl.load(z + to, mask=valid, other=0.0) * scale + shift
    tl.store(out + to, tl.maximum(best, 0.0).to(tl.bfloat16), mask=valid)


@triton.jit(do_not_specialize=["rows"])
def _norm_gradients(  # type: ignore[no-untyped-def]
    z_max, gradient, table, sums, rows, COUT: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr
):
    """A program's sums of the gradient before ReLU: of itself for beta, times the normalized z for gamma, zero for the bias."""
    program, programs, c = tl.program_id(0), tl.num_programs(0), tl.arange(0, CHANNELS)
    mean, scale, shift = load_row(table, MEAN, c, COUT), load_row(table, SCALE, c, COUT), load_row(table, SHIFT, c, COUT)
    total, moment = tl.zeros((ROWS, CHANNELS), tl.float32), tl.zeros((ROWS, CHANNELS), tl.float32)
    for tile in tl.range(program, tl.cdiv(rows, ROWS), programs):
        r = tile * ROWS + tl.arange(0, ROWS)
        at, valid = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
        z, g = tl.load(z_max + at, mask=valid, other=0.0), tl.load(gradient + at, mask=valid, other=0.0).to(tl.float32)
        g = tl.where(z * scale + shift > 0, g, 0.0)
        total += g
        moment += g * (z - mean)
    to = sums + c * programs + program
    tl.store(to + BETA * COUT * programs, tl.sum(total, 0), mask=c < COUT)
    tl.store(to + GAMMA * COUT * programs, tl.sum(moment * load_row(table, INV_STD, c, COUT), 0), mask=c < COUT)
    tl.store(to + BIAS * COUT * programs, tl.zeros((CHANNELS,), tl.float32), mask=c < COUT)
