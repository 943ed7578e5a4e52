"""Triton kernel for the gradients of a block: back through pooling, ReLU and batch norm, then multiplied with the input."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.encoder.triton.conv_forward import INACTIVE, MULTIPROCESSORS, Launch, Tiling, load_patch, pixel_pairs, window_corner
from dre.encoder.triton.conv_norm import BETA, GAMMA, INV_STD, MEAN, SCALE, SHIFT, load_row

WINDOWS = 32  # of a tile: few, because products sum over them, and several programs should share a multiprocessor


class SavedTensors(NamedTuple):
    """Tensors of the forward pass that the backward pass needs."""

    x: Tensor  # (b, h, w, cin)
    z: Tensor  # (b, h, w, cout) before batch norm; without batch norm the output of the block
    z_max: Tensor  # z at the maximum of each window; z itself without pooling
    argmax: Tensor  # position of each maximum in its window
    table: Tensor | None  # (4, cout) of batch norm: mean, 1/std, scale, shift
    flipped: Tensor  # matrices of the flipped filters, for the gradient of x


class ConvGradients(NamedTuple):
    """Gradients, as partial sums of each program where many programs contribute."""

    d_z: Tensor  # (b, h, w, cout), of the convolution's output; empty unless the gradient of x is needed
    d_matrices: Tensor  # (programs, *tiling.shape), of the expanded filters
    d_bias_parts: Tensor  # (programs, 2, cout); not written with batch norm, which cancels a bias


def conv_gradients(
    saved: SavedTensors, gradient: Tensor, d_norm: Tensor | None, tiling: Tiling, *, pool: bool, write_d_z: bool
) -> ConvGradients:
    """Gradients of the convolution's output and of its filters.

    Parameters
    ----------
    saved : SavedTensors
    gradient : Tensor
        Of the block's output.
    d_norm : Tensor of shape (3, cout) or None
        The result of ``norm_gradients``; None without batch norm.
    tiling : Tiling
    pool : bool
    write_d_z : bool
        Whether the gradient of the convolution's output is needed.
    """
    (b, h, w, _), launch = saved.x.shape, _launch_for(tiling, saved.x)
    result = ConvGradients(
        saved.x.new_empty((b, h, w, tiling.COUT) if write_d_z else 0),
        saved.x.new_empty(launch.programs, *tiling.shape, dtype=torch.float32),
        saved.x.new_empty(launch.programs, 2, tiling.COUT, dtype=torch.float32),
    )
    if saved.table is None:
        table = d_norm = gradient  # unused, but the kernel needs a pointer
    else:
        table = saved.table
    _conv_gradients[(tiling.shape[0], launch.programs)](
        saved.x, saved.z, saved.argmax, gradient, table, d_norm, *result, b, b * h * w,
        H=h, W=w, **tiling._asdict(), NORM=saved.table is not None, POOLED=pool, WRITE_D_Z=write_d_z, **launch.options,
    )  # fmt: skip
    return result


def _launch_for(tiling: Tiling, x: Tensor) -> Launch:
    """The sums take so many registers that few programs run at once; these therefore load ahead."""
    size = tiling.DEPTH * tiling.CHANNELS
    programs = MULTIPROCESSORS * min(5, triton.cdiv(3072, size))
    return Launch(programs, WINDOWS, STAGES=3 if tiling.DEPTH <= 128 else 1, num_warps=8 if size > 2048 else 4).for_images(x)


@triton.jit
def _load_pairs(image, at, valid, valid_lower, NEXT_ROW: tl.constexpr):  # type: ignore[no-untyped-def]
    """The upper two pixels of windows, and the lower two."""
    upper = tl.load(image + at, mask=valid, other=0.0).to(tl.float32)
    lower = tl.load(image + NEXT_ROW + at, mask=valid_lower, other=0.0).to(tl.float32)
    return upper, lower


@triton.jit
def _load_unpooled(gradient, argmax, window, windows, c, right, COUT: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same for a pooled output: only the maximum of each window has a gradient."""
    pooled, exists = window[:, None] * COUT + c[None, :], (window < windows)[:, None] & (c < COUT)[None, :]
    at_max = tl.load(argmax + pooled, mask=exists, other=INACTIVE)
    g = tl.load(gradient + pooled, mask=exists, other=0.0).to(tl.float32)
    return tl.where(at_max == right, g, 0.0), tl.where(at_max == right + 2, g, 0.0)


@triton.jit
def _accumulate(  # type: ignore[no-untyped-def]
    x, b, image, top, left, upper, lower, first, second, third, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr,
    DEPTH: tl.constexpr, PATCH_ROWS: tl.constexpr,
):  # fmt: skip
    above = tl.trans(load_patch(x, b, image, top, left, H, W, CIN, DEPTH, PATCH_ROWS))
    first = tl.dot(above, upper, first)
    if PATCH_ROWS == 4:
        second = tl.dot(above, lower, second)
    else:
        here = tl.trans(load_patch(x, b, image, top + 1, left, H, W, CIN, DEPTH, PATCH_ROWS))
        there = tl.trans(load_patch(x, b, image, top + 2, left, H, W, CIN, DEPTH, PATCH_ROWS))
        below = tl.trans(load_patch(x, b, image, top + 3, left, H, W, CIN, DEPTH, PATCH_ROWS))
        first, second = tl.dot(here, lower, first), tl.dot(there, lower, tl.dot(here, upper, second))
        third = tl.dot(below, lower, tl.dot(there, upper, third))
    return first, second, third


@triton.jit(do_not_specialize=["b", "count"])
def _conv_gradients(  # type: ignore[no-untyped-def]
    x, z, argmax, gradient, table, d_norm, d_z, d_matrices, d_bias_parts, b, count, H: tl.constexpr, W: tl.constexpr,
    CIN: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr, DEPTH: tl.constexpr, PATCH_ROWS: tl.constexpr,
    NORM: tl.constexpr, POOLED: tl.constexpr, WRITE_D_Z: tl.constexpr, WINDOWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The gradient of the convolution's output, stored for that of x, and its products with x, for that of the filters."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CHANNELS)
    c, right, scale, shift = chunk * CHANNELS + n % CHANNELS, (n // CHANNELS)[None, :], 1.0, 0.0
    if NORM:
        scale, shift = load_row(table, SCALE, c, COUT), load_row(table, SHIFT, c, COUT)
        slope = -scale * load_row(table, INV_STD, c, COUT) * load_row(d_norm, GAMMA, c, COUT) / count
        intercept = -scale * load_row(d_norm, BETA, c, COUT) / count - slope * load_row(table, MEAN, c, COUT)
    bias_total = tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32)
    first = tl.zeros((DEPTH, 2 * CHANNELS), tl.float32)
    second, third = first, first
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, WINDOWS), tl.num_programs(1), num_stages=STAGES):
        window = tile * WINDOWS + tl.arange(0, WINDOWS)
        image, top, left = window_corner(window, H, W)
        at, valid, valid_lower = pixel_pairs(b, image, top, left, n, c, H, W, COUT, CHANNELS)
        if NORM or not POOLED:
            y, y_lower = _load_pairs(z, at, valid, valid_lower, W * COUT)
        if POOLED:
            upper, lower = _load_unpooled(gradient, argmax, window, windows, c, right, COUT)
        else:
            upper, lower = _load_pairs(gradient, at, valid, valid_lower, W * COUT)
            upper, lower = tl.where(y * scale + shift > 0, upper, 0.0), tl.where(y_lower * scale + shift > 0, lower, 0.0)
        if NORM:
            upper = tl.where(valid, upper * scale + (y * slope + intercept), 0.0)
            lower = tl.where(valid_lower, lower * scale + (y_lower * slope + intercept), 0.0)
        else:
            bias_total += upper + lower
        upper, lower = upper.to(tl.bfloat16), lower.to(tl.bfloat16)
        if WRITE_D_Z:
            tl.store(d_z + at, upper, mask=valid)
            tl.store(d_z + W * COUT + at, lower, mask=valid_lower)
        first, second, third = _accumulate(
            x, b, image, top, left, upper, lower, first, second, third, H, W, CIN, DEPTH, PATCH_ROWS
        )
    SLOTS: tl.constexpr = 2 if PATCH_ROWS == 4 else 3
    SIZE: tl.constexpr = DEPTH * 2 * CHANNELS
    matrix = (program * tl.num_programs(0) + chunk) * SLOTS * SIZE + tl.arange(0, DEPTH)[:, None] * 2 * CHANNELS + n[None, :]
    tl.store(d_matrices + matrix, first)
    tl.store(d_matrices + matrix + SIZE, second)
    if PATCH_ROWS == 1:
        tl.store(d_matrices + matrix + 2 * SIZE, third)
    if not NORM:
        tl.store(d_bias_parts + (program * 2 + n // CHANNELS) * COUT + c, tl.sum(bias_total, 0), mask=c < COUT)
