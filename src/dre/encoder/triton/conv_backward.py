"""The gradient of a convolution's output, back through pooling, ReLU and batch norm, times what was convolved. Needs Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.encoder.triton.conv_forward import MULTIPROCESSORS, NOTHING, Cut, Launch, corner, patch, pixel_pairs
from dre.encoder.triton.conv_norm import BETA, GAMMA, MEAN, RATE, SCALE, SHIFT, row_of

WINDOWS = 32  # of a tile; the products sum over windows, so these are few, that several programs may share a multiprocessor


class Kept(NamedTuple):
    """What is kept of a block's way forward for its way back."""

    x: Tensor  # (b, h, w, cin)
    z: Tensor  # (b, h, w, cout) before batch norm; what the block gave where there is none
    peaks: Tensor  # the z of each value that the block gave
    places: Tensor  # of pooled values in their windows
    table: Tensor | None  # (4, cout) of batch norm
    flipped: Tensor  # matrices for the gradient of x


class Multiplied(NamedTuple):
    """Gradients, in parts where many programs add to them."""

    inner: Tensor  # (b, h, w, cout), of the convolution's output
    parts: Tensor  # (programs, *cut.shape), of the matrices
    bias_parts: Tensor  # (programs, 2, cout), only written without batch norm, which has no use for a bias


def multiply_gradient(kept: Kept, gradient: Tensor, totals: Tensor | None, cut: Cut, *, pool: bool, keep: bool) -> Multiplied:
    """``totals``: what total_gradients gives where there is batch norm. ``keep``: whether ``inner`` is written."""
    (b, h, w, _), plan = kept.x.shape, _plan(cut, kept.x)
    result = Multiplied(
        kept.x.new_empty((b, h, w, cut.COUT) if keep else 0),
        kept.x.new_empty(plan.programs, *cut.shape, dtype=torch.float32),
        kept.x.new_empty(plan.programs, 2, cut.COUT, dtype=torch.float32),
    )
    table, totals = (gradient, gradient) if kept.table is None else (kept.table, totals)  # a kernel is handed something
    _products[(cut.shape[0], plan.programs)](
        kept.x, kept.z, kept.places, gradient, table, totals, *result, b, b * h * w,
        H=h, W=w, **cut._asdict(), NORM=kept.table is not None, POOLED=pool, KEEP=keep, **plan.options,
    )  # fmt: skip
    return result


def _plan(cut: Cut, x: Tensor) -> Launch:
    """The sums take registers that leave room for few programs at once, so these load ahead."""
    size = cut.DEPTH * cut.CHANNELS
    programs = MULTIPROCESSORS * min(5, triton.cdiv(3072, size))
    return Launch(programs, WINDOWS, STAGES=3 if cut.DEPTH <= 128 else 1, num_warps=8 if size > 2048 else 4).over(x)


@triton.jit
def _load_pairs(image, at, real, real_lower, BELOW: tl.constexpr):  # type: ignore[no-untyped-def]
    """The upper two pixels of windows, and the lower two."""
    upper = tl.load(image + at, mask=real, other=0.0).to(tl.float32)
    lower = tl.load(image + BELOW + at, mask=real_lower, other=0.0).to(tl.float32)
    return upper, lower


@triton.jit
def _load_unpooled(gradient, places, window, windows, c, right, COUT: tl.constexpr):  # type: ignore[no-untyped-def]
    """As much, where of each window only the largest pixel has a gradient."""
    pooled, exists = window[:, None] * COUT + c[None, :], (window < windows)[:, None] & (c < COUT)[None, :]
    place = tl.load(places + pooled, mask=exists, other=NOTHING)
    g = tl.load(gradient + pooled, mask=exists, other=0.0).to(tl.float32)
    return tl.where(place == right, g, 0.0), tl.where(place == right + 2, g, 0.0)


@triton.jit
def _add_products(  # type: ignore[no-untyped-def]
    x, b, image, top, left, upper, lower, first, second, third, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr,
    DEPTH: tl.constexpr, TALL: tl.constexpr,
):  # fmt: skip
    above = tl.trans(patch(x, b, image, top, left, H, W, CIN, DEPTH, TALL))
    first = tl.dot(above, upper, first)
    if TALL == 4:
        second = tl.dot(above, lower, second)
    else:
        here = tl.trans(patch(x, b, image, top + 1, left, H, W, CIN, DEPTH, TALL))
        there = tl.trans(patch(x, b, image, top + 2, left, H, W, CIN, DEPTH, TALL))
        below = tl.trans(patch(x, b, image, top + 3, left, H, W, CIN, DEPTH, TALL))
        first, second = tl.dot(here, lower, first), tl.dot(there, lower, tl.dot(here, upper, second))
        third = tl.dot(below, lower, tl.dot(there, upper, third))
    return first, second, third


@triton.jit(do_not_specialize=["b", "count"])
def _products(  # type: ignore[no-untyped-def]
    x, z, places, gradient, table, totals, inner, parts, bias_parts, b, count, H: tl.constexpr, W: tl.constexpr,
    CIN: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr, DEPTH: tl.constexpr, TALL: tl.constexpr,
    NORM: tl.constexpr, POOLED: tl.constexpr, KEEP: tl.constexpr, WINDOWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The gradient of the convolution's output, kept for that of x, and its products with x, for that of the filters."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CHANNELS)
    c, right, scale, shift = chunk * CHANNELS + n % CHANNELS, (n // CHANNELS)[None, :], 1.0, 0.0
    if NORM:
        scale, shift = row_of(table, SCALE, c, COUT), row_of(table, SHIFT, c, COUT)
        tilt = -scale * row_of(table, RATE, c, COUT) * row_of(totals, GAMMA, c, COUT) / count
        base = -scale * row_of(totals, BETA, c, COUT) / count - tilt * row_of(table, MEAN, c, COUT)
    bias_sum = tl.zeros((WINDOWS, 2 * CHANNELS), tl.float32)
    first = tl.zeros((DEPTH, 2 * CHANNELS), tl.float32)
    second, third = first, first
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, WINDOWS), tl.num_programs(1), num_stages=STAGES):
        window = tile * WINDOWS + tl.arange(0, WINDOWS)
        image, top, left = corner(window, H, W)
        at, real, real_lower = pixel_pairs(b, image, top, left, n, c, H, W, COUT, CHANNELS)
        if NORM or not POOLED:
            y, y_lower = _load_pairs(z, at, real, real_lower, W * COUT)
        if POOLED:
            upper, lower = _load_unpooled(gradient, places, window, windows, c, right, COUT)
        else:
            upper, lower = _load_pairs(gradient, at, real, real_lower, W * COUT)
            upper, lower = tl.where(y * scale + shift > 0, upper, 0.0), tl.where(y_lower * scale + shift > 0, lower, 0.0)
        if NORM:
            upper = tl.where(real, upper * scale + (y * tilt + base), 0.0)
            lower = tl.where(real_lower, lower * scale + (y_lower * tilt + base), 0.0)
        else:
            bias_sum += upper + lower
        upper, lower = upper.to(tl.bfloat16), lower.to(tl.bfloat16)
        if KEEP:
            tl.store(inner + at, upper, mask=real)
            tl.store(inner + W * COUT + at, lower, mask=real_lower)
        first, second, third = _add_products(x, b, image, top, left, upper, lower, first, second, third, H, W, CIN, DEPTH, TALL)
    SLOTS: tl.constexpr = 2 if TALL == 4 else 3
    SIZE: tl.constexpr = DEPTH * 2 * CHANNELS
    matrix = (program * tl.num_programs(0) + chunk) * SLOTS * SIZE + tl.arange(0, DEPTH)[:, None] * 2 * CHANNELS + n[None, :]
    tl.store(parts + matrix, first)
    tl.store(parts + matrix + SIZE, second)
    if TALL == 1:
        tl.store(parts + matrix + 2 * SIZE, third)
    if not NORM:
        tl.store(bias_parts + (program * 2 + n // CHANNELS) * COUT + c, tl.sum(bias_sum, 0), mask=c < COUT)
