"""A convolution with batch norm, ReLU and pooling in few passes over memory, forward and backward, for a GPU. Needs Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# The products are over windows of 2×2 pixels, those that pooling joins. A window sees 4×4 pixels, and a row of these is 4·cin
# adjacent numbers of an NHWC image: times a matrix (4·cin, 2·cout), it gives what that row adds to two adjacent pixels of the
# output. So a number is read from cache 4 times rather than 9, and the products are large enough for the matrix units, though a
# quarter of each is with zeros. With few channels, all 16 pixels make one row of a product instead of four.
MULTIPROCESSORS = 132  # an H200's; any other number is only slower
CHANNELS = 32  # of the output in one program, at most, for the sake of registers
WINDOWS = 64  # of a tile forward: the fewest rows that Hopper's larger matrix instructions take
BACK_WINDOWS = 32  # of a tile backward, where products sum over windows: few, so that several programs share a multiprocessor
ELEMENTS = 4096  # of a tile in kernels without products: four loads of 16 bytes by each of 128 threads
SUMMERS = 5 * MULTIPROCESSORS  # programs that sum up; as many as fit at once
FOLD_ROWS, FOLD_ELEMENTS = 128, 16  # of a tile, with two or four loads of 16 bytes
PLAIN, STATISTICS, RELU, POOL = (tl.constexpr(kind) for kind in range(4))  # what follows a convolution
NOTHING = tl.constexpr(4)  # the place of a window's largest value where ReLU leaves none

Norm = tuple[Tensor, Tensor, Tensor, Tensor, float, float]


def conv_block(x: Tensor, weight: Tensor, bias: Tensor, norm: Norm | None, *, pool: bool) -> Tensor:
    """ReLU of a 3×3 convolution of x (b, h, w, cin) in bfloat16, between batch norm and 2×2 pooling where asked for.

    ``norm``: gamma, beta, running mean, running variance, momentum, eps. The kernels count in 32 bits: b·h·w·c is below 2³¹.
    """
    gamma, beta, mean, variance, momentum, eps = norm or (None, None, None, None, 0.0, 0.0)
    out: Tensor = ConvBlock.apply(  # type: ignore[no-untyped-call]
        x.contiguous(), weight, bias, gamma, beta, mean, variance, momentum, eps, pool
    )
    return out


class ConvBlock(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, gamma: Tensor | None, beta: Tensor | None,
        running_mean: Tensor | None, running_variance: Tensor | None, momentum: float, eps: float, pool: bool,
    ) -> Tensor:  # fmt: skip
        (b, h, w, cin), cout = x.shape, weight.shape[0]
        whole, half = (b, h, w, cout), (b, (h + 1) // 2, (w + 1) // 2, cout)
        cut, back = _cut(cin, cout), _cut(cout, cin)
        wide, flipped = x.new_empty(_shape(cut)), x.new_empty(_shape(back) if ctx.needs_input_grad[0] else 0)
        n = wide.numel() + flipped.numel()
        _spread[(triton.cdiv(n, 256),)](
            weight.contiguous(), wide, flipped, wide.numel(), n, *cut.values(), back["CO"], back["K"], back["TALL"], BLOCK=256
        )
        out = x.new_empty(half if pool else whole)
        places = x.new_empty(half if pool else 0, dtype=torch.uint8)
        z = peaks = out
        table = None
        if gamma is not None:
            z = x.new_empty(whole)
            peaks = torch.empty_like(out) if pool else z
            sums = x.new_empty(2, cout, _programs(x, _options(cut)), dtype=torch.float32)
            _convolve(x, wide, bias, z, sums, cut, STATISTICS)
            table = x.new_empty(4, cout, dtype=torch.float32)
            _statistics[(cout,)](
                sums, bias, gamma, beta, running_mean, running_variance, table, sums.shape[2], b * h * w, momentum, eps,
                COUT=cout, WIDE=triton.next_power_of_2(sums.shape[2]),
            )  # fmt: skip
            rows, sizes = out.numel() // cout, _flat(cout, 4 if pool else 1)
            grid = (triton.cdiv(rows, sizes["R"]),)
            _activate[grid](z, table, out, peaks, places, rows, H=h, W=w, **sizes, POOLED=pool)
        else:
            _convolve(x, wide, bias, out, places, cut, POOL if pool else RELU)
        ctx.save_for_backward(x, z, peaks, places, table, flipped)
        ctx.pool = pool
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, z, peaks, places, table, flipped = ctx.saved_tensors
        gradient = gradient.contiguous()
        (b, h, w, cin), cout, norm = x.shape, peaks.shape[3], table is not None
        cut = _cut(cin, cout)
        totals = gradient
        if norm:
            rows, sizes = gradient.numel() // cout, _flat(cout, 2)
            sums = x.new_empty(3, cout, min(SUMMERS, triton.cdiv(rows, sizes["R"])), dtype=torch.float32)
            _sum_up[(sums.shape[2],)](peaks, gradient, table, sums, rows, **sizes)
            totals = sums.sum(2)
        options = _back_options(cut)
        programs = _programs(x, options)
        parts = x.new_empty(programs, *_shape(cut), dtype=torch.float32)
        bias_parts = x.new_empty(programs, 2, cout, dtype=torch.float32)
        inner = x.new_empty((b, h, w, cout) if ctx.needs_input_grad[0] else 0)
        _products[(len(parts[0]), programs)](
            x, z, places, gradient, table if norm else totals, totals, inner, parts, bias_parts, b, b * h * w,
            H=h, W=w, **cut, NORM=norm, POOLED=ctx.pool, KEEP=ctx.needs_input_grad[0], **options,
        )  # fmt: skip
        d_weight = x.new_empty(cout, cin, 3, 3, dtype=torch.float32)
        _fold[(triton.cdiv(d_weight.numel(), FOLD_ELEMENTS),)](
            parts, d_weight, programs, parts[0].numel(), **cut, ELEMENTS=FOLD_ELEMENTS, ROWS=FOLD_ROWS
        )
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.empty_like(x)
            _convolve(inner, flipped, flipped, d_x, flipped, _cut(cout, cin), PLAIN)
        if norm:
            return d_x, d_weight, totals[2], totals[1], totals[0], *[None] * 5
        return d_x, d_weight, bias_parts.sum((0, 1)), *[None] * 7


def _cut(cin: int, cout: int) -> dict[str, Any]:
    """How a convolution is cut into products, of depth K and for CO channels, with TALL rows of pixels at once."""
    tall = 4 if cin <= 4 else 1
    deep = triton.next_power_of_2(4 * tall * cin)
    channels = max(8, min(triton.next_power_of_2(cout), CHANNELS, 4096 // deep))
    return {"CIN": cin, "COUT": cout, "CO": channels, "K": deep, "TALL": tall}


def _shape(cut: dict[str, Any]) -> tuple[int, ...]:
    """Chunks of channels, and for each as many matrices as a filter has rows; or as a window has rows, if these are tall."""
    return triton.cdiv(cut["COUT"], cut["CO"]), 2 if cut["TALL"] == 4 else 3, cut["K"], 2 * cut["CO"]


def _options(cut: dict[str, Any]) -> dict[str, Any]:
    """Nothing is loaded ahead: programs that share a multiprocessor hide each other's waits. As many as fit at once."""
    programs = MULTIPROCESSORS * (4 if cut["K"] * cut["CO"] <= 1024 else 2)
    return {"P": WINDOWS, "STAGES": 1, "num_warps": 8 if cut["K"] > 128 else 4, "programs": programs}


def _back_options(cut: dict[str, Any]) -> dict[str, Any]:
    """The sums take registers that leave room for few programs at once, so these load ahead."""
    size, stages = cut["K"] * cut["CO"], 3 if cut["K"] <= 128 else 1
    programs = MULTIPROCESSORS * min(5, triton.cdiv(3072, size))
    return {"P": BACK_WINDOWS, "STAGES": stages, "num_warps": 8 if size > 2048 else 4, "programs": programs}


def _flat(cout: int, loads: int = 1) -> dict[str, Any]:
    wide = triton.next_power_of_2(cout)
    return {"COUT": cout, "CO": wide, "R": max(1, ELEMENTS // wide // loads)}


def _programs(x: Tensor, options: dict[str, Any]) -> int:
    windows = x.shape[0] * ((x.shape[1] + 1) // 2) * ((x.shape[2] + 1) // 2)
    return int(min(triton.cdiv(windows, options["P"]), options.pop("programs")))


def _convolve(
    x: Tensor, wide: Tensor, bias: Tensor, out: Tensor, extra: Tensor, cut: dict[str, Any], kind: tl.constexpr
) -> None:
    (b, h, w, _), options = x.shape, _options(cut)
    grid = (len(wide), _programs(x, options))
    _convolution[grid](x, wide, bias, out, extra, b, H=h, W=w, **cut, KIND=kind.value, **options)


@triton.jit
def _spread_over(weight, wide, i, mask, cin, cout, co, k, tall, FLIP: tl.constexpr):  # type: ignore[no-untyped-def]
    slots = tl.where(tall == 4, 2, 3)
    deep, slot, chunk = i // (2 * co) % k, i // (2 * co * k) % slots, i // (2 * co * k * slots)
    c_in, c_out, column = deep % cin, chunk * co + i % co, deep // cin % 4 - i // co % 2
    row = tl.where(tall == 4, deep // (4 * cin) - slot, slot)
    real = mask & (deep < 4 * tall * cin) & (c_out < cout) & (row >= 0) & (row < 3) & (column >= 0) & (column < 3)
    at = (c_in * cout + c_out) * 9 + 8 - row * 3 - column if FLIP else (c_out * cin + c_in) * 9 + row * 3 + column
    tl.store(wide + i, tl.load(weight + at, mask=real, other=0.0), mask=mask)


@triton.jit(do_not_specialize=range(3, 13))
def _spread(  # type: ignore[no-untyped-def]
    weight, wide, flipped, n_wide, n, cin, cout, co, k, tall, back_co, back_k, back_tall, BLOCK: tl.constexpr
):
    """The filters (cout, cin, 3, 3) as the matrices for windows, and as those for the gradient of x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _spread_over(weight, wide, i, i < n_wide, cin, cout, co, k, tall, False)
    _spread_over(weight, flipped, i - n_wide, (i >= n_wide) & (i < n), cout, cin, back_co, back_k, back_tall, True)


@triton.jit
def _corner(window, H: tl.constexpr, W: tl.constexpr):  # type: ignore[no-untyped-def]
    """Image, row and column of a window's first pixel."""
    ACROSS: tl.constexpr = (W + 1) // 2
    EACH: tl.constexpr = (H + 1) // 2 * ACROSS
    return window // EACH, window % EACH // ACROSS * 2, window % ACROSS * 2


@triton.jit
def _patch(  # type: ignore[no-untyped-def]
    x, b, image, top, left, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, K: tl.constexpr, TALL: tl.constexpr
):
    """Four pixels of the row above ``top``, from the column before ``left``; or of four rows."""
    k = tl.arange(0, K)
    row, column = (top - 1)[:, None] + (k // (4 * CIN))[None, :], (left - 1)[:, None] + (k // CIN % 4)[None, :]
    real = (image < b)[:, None] & (row >= 0) & (row < H) & (column >= 0) & (column < W) & (k < 4 * TALL * CIN)[None, :]
    at = ((image[:, None] * H + row) * W + (left - 1)[:, None]) * CIN + (k % (4 * CIN))[None, :]
    return tl.load(x + at, mask=real, other=0.0)


@triton.jit
def _pairs(  # type: ignore[no-untyped-def]
    b, image, top, left, n, c, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr
):
    """Where the upper two pixels of windows are in an image of cout channels, which exist, and which of the lower two."""
    at = ((image * H + top) * W + left)[:, None] * COUT + (n // CO * COUT + c)[None, :]
    real = (image < b)[:, None] & (left[:, None] + (n // CO)[None, :] < W) & (c < COUT)[None, :]
    return at, real, real & (top + 1 < H)[:, None]


@triton.jit(do_not_specialize=["b"])
def _convolution(  # type: ignore[no-untyped-def]
    x, wide, bias, out, extra, b, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr,
    K: tl.constexpr, TALL: tl.constexpr, KIND: tl.constexpr, P: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Programs for each chunk of channels go through the tiles of windows."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CO)
    c, channel = chunk * CO + n % CO, chunk * CO + tl.arange(0, CO)
    SLOTS: tl.constexpr = 2 if TALL == 4 else 3
    matrix = wide + chunk * SLOTS * K * 2 * CO + tl.arange(0, K)[:, None] * 2 * CO + n[None, :]
    first, second, third = tl.load(matrix), tl.load(matrix + K * 2 * CO), tl.load(matrix + (SLOTS - 1) * K * 2 * CO)
    if KIND >= RELU:
        shift = tl.load(bias + c, mask=c < COUT, other=0.0)[None, :]
    total, squares = tl.zeros((P, 2 * CO), tl.float32), tl.zeros((P, 2 * CO), tl.float32)
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, P), tl.num_programs(1), num_stages=STAGES):
        window = tile * P + tl.arange(0, P)
        image, top, left = _corner(window, H, W)
        above = _patch(x, b, image, top, left, H, W, CIN, K, TALL)
        if TALL == 4:
            upper, lower = tl.dot(above, first), tl.dot(above, second)
        else:
            here = _patch(x, b, image, top + 1, left, H, W, CIN, K, TALL)
            there = _patch(x, b, image, top + 2, left, H, W, CIN, K, TALL)
            below = _patch(x, b, image, top + 3, left, H, W, CIN, K, TALL)
            upper, lower = tl.dot(here, second, tl.dot(above, first)), tl.dot(here, first)
            upper, lower = tl.dot(there, third, upper), tl.dot(below, third, tl.dot(there, second, lower))
        at, real, real_lower = _pairs(b, image, top, left, n, c, H, W, COUT, CO)
        if KIND == STATISTICS:
            seen, seen_lower = tl.where(real, upper, 0.0), tl.where(real_lower, lower, 0.0)
            total += seen + seen_lower
            squares += seen * seen + seen_lower * seen_lower
        if KIND == RELU:
            upper, lower = tl.maximum(upper + shift, 0.0), tl.maximum(lower + shift, 0.0)
        if KIND == POOL:
            upper, lower = tl.where(real, upper + shift, 0.0), tl.where(real_lower, lower + shift, 0.0)
            best, right = tl.split(tl.permute(tl.reshape(upper, (P, 2, CO)), (0, 2, 1)))
            lower_left, lower_right = tl.split(tl.permute(tl.reshape(lower, (P, 2, CO)), (0, 2, 1)))
            place, best = tl.where(right > best, 1, 0), tl.maximum(right, best)
            place, best = tl.where(lower_left > best, 2, place), tl.maximum(lower_left, best)
            place, best = tl.where(lower_right > best, 3, place), tl.maximum(lower_right, best)
            pooled, exists = window[:, None] * COUT + channel[None, :], (window < windows)[:, None] & (channel < COUT)[None, :]
            tl.store(out + pooled, tl.maximum(best, 0.0).to(tl.bfloat16), mask=exists)
            tl.store(extra + pooled, tl.where(best > 0, place, NOTHING).to(tl.uint8), mask=exists)
        else:
            tl.store(out + at, upper.to(tl.bfloat16), mask=real)
            tl.store(out + W * COUT + at, lower.to(tl.bfloat16), mask=real_lower)
    if KIND == STATISTICS:
        to = extra + channel * tl.num_programs(1) + program
        tl.store(to, tl.sum(tl.reshape(tl.sum(total, 0), (2, CO)), 0), mask=channel < COUT)
        squares = tl.sum(tl.reshape(tl.sum(squares, 0), (2, CO)), 0)
        tl.store(to + COUT * tl.num_programs(1), squares, mask=channel < COUT)


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
    tl.store(table + c, mean)
    tl.store(table + COUT + c, rate)
    tl.store(table + 2 * COUT + c, scale)
    tl.store(table + 3 * COUT + c, tl.load(beta + c) - mean * scale)
    unbiased = variance * (count / tl.maximum(count - 1, 1))
    tl.store(running_mean + c, tl.load(running_mean + c) * (1 - momentum) + (mean + tl.load(bias + c)) * momentum)
    tl.store(running_variance + c, tl.load(running_variance + c) * (1 - momentum) + unbiased * momentum)


@triton.jit
def _row(table, c, i: tl.constexpr, COUT: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + i * COUT + c, mask=c < COUT, other=0.0)[None, :]


@triton.jit(do_not_specialize=["rows"])
def _activate(  # type: ignore[no-untyped-def]
    z, table, out, peaks, places, rows, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, R: tl.constexpr,
    POOLED: tl.constexpr,
):  # fmt: skip
    """Batch norm, ReLU and pooling, which keeps the z of each window's first largest value, and its place, for the gradient."""
    r, c = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, CO)
    scale, shift = _row(table, c, 2, COUT), _row(table, c, 3, COUT)
    to, real = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
    if POOLED:
        image, top, left = _corner(r, H, W)
        at = ((image * H + top) * W + left)[:, None] * COUT + c[None, :]
        peak, place = tl.load(z + at, mask=real, other=0.0), tl.zeros((R, CO), tl.int32)
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
    peaks, gradient, table, sums, rows, COUT: tl.constexpr, CO: tl.constexpr, R: tl.constexpr
):
    """A program's sums of the gradient past ReLU: alone for beta, times the normalised z for gamma; and none for the bias."""
    program, programs, c = tl.program_id(0), tl.num_programs(0), tl.arange(0, CO)
    mean, scale, shift = _row(table, c, 0, COUT), _row(table, c, 2, COUT), _row(table, c, 3, COUT)
    total, moment = tl.zeros((R, CO), tl.float32), tl.zeros((R, CO), tl.float32)
    for tile in tl.range(program, tl.cdiv(rows, R), programs):
        r = tile * R + tl.arange(0, R)
        at, real = r[:, None] * COUT + c[None, :], (r < rows)[:, None] & (c < COUT)[None, :]
        z, g = tl.load(peaks + at, mask=real, other=0.0), tl.load(gradient + at, mask=real, other=0.0).to(tl.float32)
        g = tl.where(z * scale + shift > 0, g, 0.0)
        total += g
        moment += g * (z - mean)
    to = sums + c * programs + program
    tl.store(to, tl.sum(total, 0), mask=c < COUT)
    tl.store(to + COUT * programs, tl.sum(moment * _row(table, c, 1, COUT), 0), mask=c < COUT)
    tl.store(to + 2 * COUT * programs, tl.zeros((CO,), tl.float32), mask=c < COUT)


@triton.jit
def _multiply(  # type: ignore[no-untyped-def]
    x, b, image, top, left, upper, lower, first, second, third, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr,
    K: tl.constexpr, TALL: tl.constexpr,
):  # fmt: skip
    above = tl.trans(_patch(x, b, image, top, left, H, W, CIN, K, TALL))
    first = tl.dot(above, upper, first)
    if TALL == 4:
        second = tl.dot(above, lower, second)
    else:
        here = tl.trans(_patch(x, b, image, top + 1, left, H, W, CIN, K, TALL))
        there = tl.trans(_patch(x, b, image, top + 2, left, H, W, CIN, K, TALL))
        below = tl.trans(_patch(x, b, image, top + 3, left, H, W, CIN, K, TALL))
        first, second = tl.dot(here, lower, first), tl.dot(there, lower, tl.dot(here, upper, second))
        third = tl.dot(below, lower, tl.dot(there, upper, third))
    return first, second, third


@triton.jit(do_not_specialize=["b", "count"])
def _products(  # type: ignore[no-untyped-def]
    x, z, places, gradient, table, totals, inner, parts, bias_parts, b, count, H: tl.constexpr, W: tl.constexpr,
    CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, TALL: tl.constexpr, NORM: tl.constexpr,
    POOLED: tl.constexpr, KEEP: tl.constexpr, P: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The gradient of the convolution's output, kept for that of x, and its products with x, for that of the filters."""
    chunk, program, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CO)
    c, right, scale, shift = chunk * CO + n % CO, (n // CO)[None, :], 1.0, 0.0
    if NORM:
        scale, shift = _row(table, c, 2, COUT), _row(table, c, 3, COUT)
        tilt = -scale * _row(table, c, 1, COUT) * _row(totals, c, 1, COUT) / count
        base = -scale * _row(totals, c, 0, COUT) / count - tilt * _row(table, c, 0, COUT)
    bias_sum = tl.zeros((P, 2 * CO), tl.float32)
    first = tl.zeros((K, 2 * CO), tl.float32)
    second, third = first, first
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, P), tl.num_programs(1), num_stages=STAGES):
        window = tile * P + tl.arange(0, P)
        image, top, left = _corner(window, H, W)
        at, real, real_lower = _pairs(b, image, top, left, n, c, H, W, COUT, CO)
        if NORM or not POOLED:
            y = tl.load(z + at, mask=real, other=0.0).to(tl.float32)
            y_lower = tl.load(z + W * COUT + at, mask=real_lower, other=0.0).to(tl.float32)
        if POOLED:
            pooled, exists = window[:, None] * COUT + c[None, :], (window < windows)[:, None] & (c < COUT)[None, :]
            place = tl.load(places + pooled, mask=exists, other=NOTHING)
            g = tl.load(gradient + pooled, mask=exists, other=0.0).to(tl.float32)
            upper, lower = tl.where(place == right, g, 0.0), tl.where(place == right + 2, g, 0.0)
        else:
            upper = tl.load(gradient + at, mask=real, other=0.0).to(tl.float32)
            lower = tl.load(gradient + W * COUT + at, mask=real_lower, other=0.0).to(tl.float32)
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
        first, second, third = _multiply(x, b, image, top, left, upper, lower, first, second, third, H, W, CIN, K, TALL)
    SLOTS: tl.constexpr = 2 if TALL == 4 else 3
    matrix = (program * tl.num_programs(0) + chunk) * SLOTS * K * 2 * CO + tl.arange(0, K)[:, None] * 2 * CO + n[None, :]
    tl.store(parts + matrix, first)
    tl.store(parts + matrix + K * 2 * CO, second)
    if TALL == 1:
        tl.store(parts + matrix + 2 * K * 2 * CO, third)
    if not NORM:
        tl.store(bias_parts + (program * 2 + n // CO) * COUT + c, tl.sum(bias_sum, 0), mask=c < COUT)


@triton.jit(do_not_specialize=["programs"])
def _fold(  # type: ignore[no-untyped-def]
    parts, d_weight, programs, size, CIN, COUT, CO, K, TALL: tl.constexpr, ELEMENTS: tl.constexpr, ROWS: tl.constexpr
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
            at = (c_out // CO * (2 if TALL == 4 else 3) + slot) * K + k * CIN + c_in
            at = at * 2 * CO + right * CO + c_out % CO
            total += tl.load(parts + program[:, None] * size + at[None, :], mask=mask, other=0.0)
    tl.store(d_weight + (c_out * CIN + c_in) * 9 + row * 3 + column, tl.sum(total, 0), mask=row < 3)
