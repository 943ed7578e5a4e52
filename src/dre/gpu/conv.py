"""A convolution with batch norm, ReLU and pooling in few passes over memory, forward and backward, for a GPU. Needs Triton.

Every kernel that convolves works on windows of 2×2 pixels, those that pooling joins: a window sees 4×4 pixels, whose rows are
4·cin adjacent numbers of an NHWC image, so one row of 4 pixels times a matrix (4·cin, 2·cout) gives what that row adds to two
adjacent pixels. This reads each number 4 times from cache rather than 9, makes the products large enough for the matrix units,
and has a pooled window in one place. With cin of at most 4 all 16 pixels make one row of the product instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

WINDOWS = 64  # of a tile: the rows of the smallest product that Hopper's matrix units take
CHANNELS = 32  # of the output in one program at most: the accumulators' registers
PROGRAMS = 132 * 4  # each goes through many tiles, with its weights at hand; 132 multiprocessors
ELEMENTS = 4096  # of a tile of the kernels without products: 4 loads of 16 bytes for each of 128 threads
SUM_PROGRAMS = 132 * 8
FOLD_ELEMENTS, FOLD_ROWS = 32, 64
PLAIN, STATISTICS, RELU, POOL = (tl.constexpr(kind) for kind in range(4))  # what follows a convolution
NOTHING = tl.constexpr(4)  # in place of the maximum's position where ReLU leaves none

Norm = tuple[Tensor, Tensor, Tensor, Tensor, float, float]


class Plan(NamedTuple):
    """How a convolution is cut up; tensors must have below 2³¹ elements, for the kernels count in 32 bits."""

    cin: int
    cout: int

    @property
    def packed(self) -> bool:
        return self.cin <= 4

    @property
    def deep(self) -> int:
        """Rows of one of the matrices of weights, of which there is one for each row of the filter, or of the window if packed."""
        return triton.next_power_of_2((16 if self.packed else 4) * self.cin)

    @property
    def channels(self) -> int:
        """Of the output, in one program."""
        return max(8, min(triton.next_power_of_2(self.cout), CHANNELS, 4096 // self.deep))

    @property
    def chunks(self) -> int:
        return triton.cdiv(self.cout, self.channels)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.chunks, 2 if self.packed else 3, self.deep, 2 * self.channels

    @property
    def warps(self) -> int:
        return 8 if self.deep * self.channels > 2048 else 4

    @property
    def stages(self) -> int:
        """Tiles under way at once, as shared memory has room for."""
        return 3 if self.deep <= 64 else 2 if self.deep <= 128 else 1

    def sizes(self) -> dict[str, Any]:
        return {"CIN": self.cin, "COUT": self.cout, "CO": self.channels, "K": self.deep, "PACKED": self.packed, "P": WINDOWS,
                "STAGES": self.stages}  # fmt: skip


def conv_block(x: Tensor, weight: Tensor, bias: Tensor, norm: Norm | None, *, pool: bool) -> Tensor:
    """ReLU of a 3×3 convolution of x (b, h, w, cin), with batch norm of (gamma, beta, running mean and variance, momentum, eps)
    before and 2×2 pooling after it, where asked for."""
    gamma, beta, mean, variance, momentum, eps = norm or (None, None, None, None, 0.0, 0.0)
    out: Tensor = ConvBlock.apply(x, weight, bias, gamma, beta, mean, variance, momentum, eps, pool)
    return out


class ConvBlock(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, gamma: Tensor | None, beta: Tensor | None,
        running_mean: Tensor | None, running_variance: Tensor | None, momentum: float, eps: float, pool: bool,
    ) -> Tensor:  # fmt: skip
        (b, h, w, cin), cout = x.shape, weight.shape[0]
        half = (b, (h + 1) // 2, (w + 1) // 2, cout)
        plan, back = Plan(cin, cout), Plan(cout, cin)
        wide = x.new_empty(plan.shape)
        flipped = x.new_empty(back.shape if ctx.needs_input_grad[0] else 0)
        n_wide = wide.numel()
        _spread[(triton.cdiv(n_wide + flipped.numel(), 1024),)](
            weight.contiguous(), wide, flipped, n_wide, flipped.numel(), CIN=cin, COUT=cout, CO=plan.channels, K=plan.deep,
            PACKED=plan.packed, BACK_CO=back.channels, BACK_K=back.deep, BACK_PACKED=back.packed, BLOCK=1024,
        )  # fmt: skip
        table, places = None, x.new_empty(half if pool else 0, dtype=torch.uint8)
        if gamma is not None:
            saved = x.new_empty(b, h, w, cout)
            programs = _programs(b, h, w)
            sums = x.new_empty(2, cout, programs, dtype=torch.float32)
            _convolve(x, wide, bias, saved, sums, plan, STATISTICS)
            table = x.new_empty(4, cout, dtype=torch.float32)
            _statistics[(cout,)](
                sums, bias, gamma, beta, running_mean, running_variance, table, programs, b * h * w, momentum, eps,
                COUT=cout, WIDE=triton.next_power_of_2(programs),
            )  # fmt: skip
            out = x.new_empty(half if pool else saved.shape)
            n = out.numel() // cout
            peaks = torch.empty_like(out) if pool else saved
            sizes = _streaming(cout)
            rows = sizes["R"] // (4 if pool else 1)
            _activate[(triton.cdiv(n, rows),)](saved, table, out, peaks, places, n, **sizes | {"R": rows}, H=h, W=w, POOLED=pool)
        elif pool:
            saved = peaks = out = x.new_empty(half)
            _convolve(x, wide, bias, out, places, plan, POOL)
        else:
            saved = peaks = out = x.new_empty(b, h, w, cout)
            _convolve(x, wide, bias, out, out, plan, RELU)
        ctx.save_for_backward(x, saved, peaks, places, table, flipped)
        ctx.pool = pool
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, saved, peaks, places, table, flipped = ctx.saved_tensors
        gradient = gradient.contiguous()
        (b, h, w, cin), cout = x.shape, saved.shape[3]
        plan, pool, norm = Plan(cin, cout), ctx.pool, table is not None
        programs = _programs(b, h, w)
        if norm:
            n = gradient.numel() // cout
            sizes = _streaming(cout)
            summers = min(SUM_PROGRAMS, triton.cdiv(n, sizes["R"]))
            sums = x.new_empty(2, cout, summers, dtype=torch.float32)
            _sum_up[(summers,)](peaks, gradient, table, sums, n, **sizes)
            beta_gamma = sums.sum(2)
        parts = x.new_empty(programs, *plan.shape, dtype=torch.float32)
        bias_parts = x.new_empty(programs, 2, cout, dtype=torch.float32)
        inner = x.new_empty((b, h, w, cout) if ctx.needs_input_grad[0] else 0)
        _weigh[(programs, plan.chunks)](
            x, saved, places, gradient, table if norm else x, beta_gamma if norm else x, inner, parts, bias_parts, b, b * h * w,
            H=h, W=w, **plan.sizes(), NORM=norm, POOLED=pool, KEEP=ctx.needs_input_grad[0], num_warps=plan.warps,
        )  # fmt: skip
        d_weight = x.new_empty(cout, cin, 3, 3, dtype=torch.float32)
        _fold[(triton.cdiv(d_weight.numel(), FOLD_ELEMENTS),)](
            parts, d_weight, programs, CIN=cin, COUT=cout, CO=plan.channels, K=plan.deep, PACKED=plan.packed,
            SIZE=parts[0].numel(), ELEMENTS=FOLD_ELEMENTS, ROWS=FOLD_ROWS,
        )  # fmt: skip
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.empty_like(x)
            _convolve(inner, flipped, x, d_x, x, Plan(cout, cin), PLAIN)
        if not norm:
            return d_x, d_weight, bias_parts.sum((0, 1)), *[None] * 7
        return d_x, d_weight, bias_parts.new_zeros(cout), beta_gamma[1], beta_gamma[0], *[None] * 5


def _tiles(b: int, h: int, w: int) -> int:
    return triton.cdiv(b * ((h + 1) // 2) * ((w + 1) // 2), WINDOWS)


def _programs(b: int, h: int, w: int) -> int:
    return min(PROGRAMS, _tiles(b, h, w))


def _streaming(cout: int) -> dict[str, Any]:
    wide = triton.next_power_of_2(cout)
    return {"COUT": cout, "CO": wide, "R": max(4, ELEMENTS // wide)}


def _convolve(x: Tensor, wide: Tensor, bias: Tensor, out: Tensor, extra: Tensor, plan: Plan, kind: tl.constexpr) -> None:
    b, h, w, _ = x.shape
    _convolution[(_programs(b, h, w), plan.chunks)](
        x, wide, bias, out, extra, b, H=h, W=w, **plan.sizes(), KIND=kind.value, num_warps=plan.warps
    )


@triton.jit
def _spread_over(  # type: ignore[no-untyped-def]
    weight, wide, i, n, CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr,
    FLIP: tl.constexpr,
):  # fmt: skip
    SLOTS: tl.constexpr = 2 if PACKED else 3
    k, slot, chunk = i // (2 * CO) % K, i // (2 * CO * K) % SLOTS, i // (2 * CO * K * SLOTS)
    c_in, c_out = k % CIN, chunk * CO + i % CO
    column = k // CIN % 4 - i // CO % 2
    row = k // (4 * CIN) - slot if PACKED else slot
    real = (k < (16 if PACKED else 4) * CIN) & (c_out < COUT) & (row >= 0) & (row < 3) & (column >= 0) & (column < 3)
    at = (c_in * COUT + c_out) * 9 + 8 - row * 3 - column if FLIP else (c_out * CIN + c_in) * 9 + row * 3 + column
    tl.store(wide + i, tl.load(weight + at, mask=real & (i >= 0) & (i < n), other=0.0), mask=(i >= 0) & (i < n))


@triton.jit
def _spread(  # type: ignore[no-untyped-def]
    weight, wide, flipped, n_wide, n_flipped, CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PACKED: tl.constexpr, BACK_CO: tl.constexpr, BACK_K: tl.constexpr, BACK_PACKED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The filters (cout, cin, 3, 3) as matrices for windows, and those for the gradient of x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _spread_over(weight, wide, i, n_wide, CIN, COUT, CO, K, PACKED, False)
    _spread_over(weight, flipped, i - n_wide, n_flipped, COUT, CIN, BACK_CO, BACK_K, BACK_PACKED, True)


@triton.jit
def _corner(window, H: tl.constexpr, W: tl.constexpr):  # type: ignore[no-untyped-def]
    """Image, row and column of a window's first pixel."""
    ACROSS: tl.constexpr = (W + 1) // 2
    EACH: tl.constexpr = (H + 1) // 2 * ACROSS
    return window // EACH, window % EACH // ACROSS * 2, window % ACROSS * 2


@triton.jit
def _patch(  # type: ignore[no-untyped-def]
    x, b, image, top, left, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr
):
    """The 4 pixels of a row around each window, beginning above and left of (top, left); or those of 4 rows if packed."""
    k = tl.arange(0, K)
    row, column = (top - 1)[:, None] + (k // (4 * CIN))[None, :], (left - 1)[:, None] + (k // CIN % 4)[None, :]
    real = (image < b)[:, None] & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    real = real & (k < (16 if PACKED else 4) * CIN)[None, :]
    at = ((image[:, None] * H + row) * W + (left - 1)[:, None]) * CIN + (k % (4 * CIN))[None, :]
    return tl.load(x + at, mask=real, other=0.0)


@triton.jit
def _pair(  # type: ignore[no-untyped-def]
    b, image, top, left, n, c, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr
):
    """Where the two adjacent pixels of a row of a window lie in an image of cout channels, and which exist."""
    at = ((image * H + top) * W + left)[:, None] * COUT + (n // CO * COUT + c)[None, :]
    return at, ((image < b) & (top < H))[:, None] & (left[:, None] + (n // CO)[None, :] < W) & (c < COUT)[None, :]


@triton.jit
def _convolution(  # type: ignore[no-untyped-def]
    x, wide, bias, out, extra, b, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr,
    K: tl.constexpr, PACKED: tl.constexpr, P: tl.constexpr, STAGES: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Programs over tiles of windows, and over chunks of the output's channels."""
    program, chunk, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CO)
    c = chunk * CO + n % CO
    SLOTS: tl.constexpr = 2 if PACKED else 3
    matrix = wide + chunk * SLOTS * K * 2 * CO + tl.arange(0, K)[:, None] * 2 * CO + n[None, :]
    first, second, third = tl.load(matrix), tl.load(matrix + K * 2 * CO), None
    if not PACKED:
        third = tl.load(matrix + 2 * K * 2 * CO)
    if KIND == RELU or KIND == POOL:
        shift = tl.load(bias + c, mask=c < COUT, other=0.0)[None, :]
    total, squares = tl.zeros((P, 2 * CO), tl.float32), tl.zeros((P, 2 * CO), tl.float32)
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, P), tl.num_programs(0), num_stages=STAGES):
        window = tile * P + tl.arange(0, P)
        image, top, left = _corner(window, H, W)
        above = _patch(x, b, image, top, left, H, W, CIN, K, PACKED)
        if PACKED:
            upper, lower = tl.dot(above, first), tl.dot(above, second)
        else:
            here = _patch(x, b, image, top + 1, left, H, W, CIN, K, PACKED)
            there = _patch(x, b, image, top + 2, left, H, W, CIN, K, PACKED)
            below = _patch(x, b, image, top + 3, left, H, W, CIN, K, PACKED)
            upper, lower = tl.dot(here, second, tl.dot(above, first)), tl.dot(here, first)
            upper, lower = tl.dot(there, third, upper), tl.dot(below, third, tl.dot(there, second, lower))
        at, real = _pair(b, image, top, left, n, c, H, W, COUT, CO)
        at_lower, real_lower = _pair(b, image, top + 1, left, n, c, H, W, COUT, CO)
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
            place = tl.where(right > best, 1, 0)
            best = tl.maximum(best, right)
            place = tl.where(lower_left > best, 2, place)
            best = tl.maximum(best, lower_left)
            place = tl.where(lower_right > best, 3, place)
            best = tl.maximum(best, lower_right)
            channel = chunk * CO + tl.arange(0, CO)
            pooled = window[:, None] * COUT + channel[None, :]
            exists = (window < windows)[:, None] & (channel < COUT)[None, :]
            tl.store(out + pooled, tl.maximum(best, 0.0).to(tl.bfloat16), mask=exists)
            tl.store(extra + pooled, tl.where(best > 0, place, NOTHING).to(tl.uint8), mask=exists)
        else:
            tl.store(out + at, upper.to(tl.bfloat16), mask=real)
            tl.store(out + at_lower, lower.to(tl.bfloat16), mask=real_lower)
    if KIND == STATISTICS:
        channel = chunk * CO + tl.arange(0, CO)
        place = extra + channel * tl.num_programs(0) + program
        tl.store(place, tl.sum(tl.reshape(tl.sum(total, 0), (2, CO)), 0), mask=channel < COUT)
        squares = tl.sum(tl.reshape(tl.sum(squares, 0), (2, CO)), 0)
        tl.store(place + COUT * tl.num_programs(0), squares, mask=channel < COUT)


@triton.jit
def _statistics(  # type: ignore[no-untyped-def]
    sums, bias, gamma, beta, running_mean, running_variance, table, programs, count, momentum, eps,
    COUT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Mean, 1/deviation, scale and shift of each channel; the bias only moves the running mean."""
    c, i = tl.program_id(0), tl.arange(0, WIDE)
    total = tl.load(sums + c * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    squares = tl.load(sums + (COUT + c) * programs + i, mask=i < programs, other=0.0).to(tl.float64)
    mean = tl.sum(total, 0) / count
    variance = tl.maximum(tl.sum(squares, 0) / count - mean * mean, 0.0)
    rate = 1 / tl.sqrt((variance + eps).to(tl.float32))
    mean, scale = mean.to(tl.float32), rate * tl.load(gamma + c)
    tl.store(table + c, mean)
    tl.store(table + COUT + c, rate)
    tl.store(table + 2 * COUT + c, scale)
    tl.store(table + 3 * COUT + c, tl.load(beta + c) - mean * scale)
    unbiased = (variance * count / tl.maximum(count - 1, 1)).to(tl.float32)
    tl.store(running_mean + c, tl.load(running_mean + c) * (1 - momentum) + (mean + tl.load(bias + c)) * momentum)
    tl.store(running_variance + c, tl.load(running_variance + c) * (1 - momentum) + unbiased * momentum)


@triton.jit
def _row(table, c, COUT: tl.constexpr, i: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + i * COUT + c, mask=c < COUT, other=0.0)[None, :]


@triton.jit
def _activate(  # type: ignore[no-untyped-def]
    z, table, out, peaks, places, n, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr,
    POOLED: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Batch norm, ReLU and pooling, which also notes the z of each window's first largest value, and its place."""
    r, c = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, CO)
    scale, shift = _row(table, c, COUT, 2), _row(table, c, COUT, 3)
    real, to = (r < n)[:, None] & (c < COUT)[None, :], r[:, None] * COUT + c[None, :]
    if POOLED:
        image, top, left = _corner(r, H, W)
        at = ((image * H + top) * W + left)[:, None] * COUT + c[None, :]
        peak = tl.load(z + at, mask=real, other=0.0)
        best, place = peak * scale + shift, tl.zeros((R, CO), tl.int32)
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


@triton.jit
def _sum_up(  # type: ignore[no-untyped-def]
    peaks, gradient, table, sums, n, COUT: tl.constexpr, CO: tl.constexpr, R: tl.constexpr
):
    """Each channel's sums of the gradient that passes ReLU, alone (beta's) and times the normalised z (gamma's)."""
    program, c = tl.program_id(0), tl.arange(0, CO)
    mean, rate, scale, shift = _row(table, c, COUT, 0), _row(table, c, COUT, 1), _row(table, c, COUT, 2), _row(table, c, COUT, 3)
    total, moment = tl.zeros((R, CO), tl.float32), tl.zeros((R, CO), tl.float32)
    for tile in tl.range(program, tl.cdiv(n, R), tl.num_programs(0)):
        r = tile * R + tl.arange(0, R)
        at, real = r[:, None] * COUT + c[None, :], (r < n)[:, None] & (c < COUT)[None, :]
        z = tl.load(peaks + at, mask=real, other=0.0)
        g = tl.where(z * scale + shift > 0, tl.load(gradient + at, mask=real, other=0.0), 0.0)
        total += g
        moment += g * (z - mean)
    place = sums + c * tl.num_programs(0) + program
    tl.store(place, tl.sum(total, 0), mask=c < COUT)
    tl.store(place + COUT * tl.num_programs(0), tl.sum(moment * rate, 0), mask=c < COUT)


@triton.jit
def _weigh(  # type: ignore[no-untyped-def]
    x, saved, places, gradient, table, beta_gamma, inner, parts, bias_parts, b, count, H: tl.constexpr, W: tl.constexpr,
    CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr, P: tl.constexpr,
    STAGES: tl.constexpr, NORM: tl.constexpr, POOLED: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """The gradient of the convolution's output, kept for the gradient of x, and its products with x for that of the filters."""
    program, chunk, n = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * CO)
    c, right = chunk * CO + n % CO, (n // CO)[None, :]
    if NORM:
        mean, rate, scale, shift = _row(table, c, COUT, 0), _row(table, c, COUT, 1), _row(table, c, COUT, 2), _row(table, c, COUT, 3)
        tilt = -scale * rate * _row(beta_gamma, c, COUT, 1) / count
        base = -scale * _row(beta_gamma, c, COUT, 0) / count - tilt * mean
    bias_sum = tl.zeros((P, 2 * CO), tl.float32)
    first, second, third = tl.zeros((K, 2 * CO), tl.float32), tl.zeros((K, 2 * CO), tl.float32), tl.zeros((K, 2 * CO), tl.float32)
    windows = b * ((H + 1) // 2) * ((W + 1) // 2)
    for tile in tl.range(program, tl.cdiv(windows, P), tl.num_programs(0), num_stages=STAGES):
        window = tile * P + tl.arange(0, P)
        image, top, left = _corner(window, H, W)
        at, real = _pair(b, image, top, left, n, c, H, W, COUT, CO)
        at_lower, real_lower = _pair(b, image, top + 1, left, n, c, H, W, COUT, CO)
        if NORM or not POOLED:
            z = tl.load(saved + at, mask=real, other=0.0).to(tl.float32)
            z_lower = tl.load(saved + at_lower, mask=real_lower, other=0.0).to(tl.float32)
        if POOLED:
            pooled, exists = window[:, None] * COUT + c[None, :], (window < windows)[:, None] & (c < COUT)[None, :]
            place = tl.load(places + pooled, mask=exists, other=NOTHING)
            g = tl.load(gradient + pooled, mask=exists, other=0.0).to(tl.float32)
            upper, lower = tl.where(place == right, g, 0.0), tl.where(place == right + 2, g, 0.0)
        else:
            upper = tl.load(gradient + at, mask=real, other=0.0).to(tl.float32)
            lower = tl.load(gradient + at_lower, mask=real_lower, other=0.0).to(tl.float32)
            y, y_lower = (z * scale + shift, z_lower * scale + shift) if NORM else (z, z_lower)
            upper, lower = tl.where(y > 0, upper, 0.0), tl.where(y_lower > 0, lower, 0.0)
        if NORM:
            upper = tl.where(real, upper * scale + (z * tilt + base), 0.0)
            lower = tl.where(real_lower, lower * scale + (z_lower * tilt + base), 0.0)
        else:
            bias_sum += upper + lower
        upper, lower = upper.to(tl.bfloat16), lower.to(tl.bfloat16)
        if KEEP:
            tl.store(inner + at, upper, mask=real)
            tl.store(inner + at_lower, lower, mask=real_lower)
        above = tl.trans(_patch(x, b, image, top, left, H, W, CIN, K, PACKED))
        first = tl.dot(above, upper, first)
        if PACKED:
            second = tl.dot(above, lower, second)
        else:
            here = tl.trans(_patch(x, b, image, top + 1, left, H, W, CIN, K, PACKED))
            there = tl.trans(_patch(x, b, image, top + 2, left, H, W, CIN, K, PACKED))
            below = tl.trans(_patch(x, b, image, top + 3, left, H, W, CIN, K, PACKED))
            first = tl.dot(here, lower, first)
            second = tl.dot(there, lower, tl.dot(here, upper, second))
            third = tl.dot(below, lower, tl.dot(there, upper, third))
    SLOTS: tl.constexpr = 2 if PACKED else 3
    matrix = (program * tl.num_programs(1) + chunk) * SLOTS * K * 2 * CO + tl.arange(0, K)[:, None] * 2 * CO + n[None, :]
    tl.store(parts + matrix, first)
    tl.store(parts + matrix + K * 2 * CO, second)
    if not PACKED:
        tl.store(parts + matrix + 2 * K * 2 * CO, third)
    if not NORM:
        tl.store(bias_parts + (program * 2 + n // CO) * COUT + c, tl.sum(bias_sum, 0), mask=c < COUT)


@triton.jit
def _fold(  # type: ignore[no-untyped-def]
    parts, d_weight, programs, CIN: tl.constexpr, COUT: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr,
    SIZE: tl.constexpr, ELEMENTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The sum of all programs' products, taken from windows to the filters (cout, cin, 3, 3)."""
    i = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    c_out, c_in, column, row = i % COUT, i // COUT % CIN, i // (COUT * CIN) % 3, i // (COUT * CIN * 3)
    total = tl.zeros((ROWS, ELEMENTS), tl.float32)
    for start in range(0, programs, ROWS):
        program = start + tl.arange(0, ROWS)
        mask = (program < programs)[:, None] & (row < 3)[None, :]
        for place in tl.static_range(4 if PACKED else 2):  # a filter's weight is in the matrices once for each pixel it leads to
            down, right = place // 2, place % 2
            slot, k = (down, (row + down) * 4 + column + right) if PACKED else (row, column + right)
            at = (c_out // CO * (2 if PACKED else 3) + slot) * K + k * CIN + c_in
            at = at * 2 * CO + right * CO + c_out % CO
            total += tl.load(parts + program[:, None] * SIZE + at[None, :], mask=mask, other=0.0)
    tl.store(d_weight + (c_out * CIN + c_in) * 9 + row * 3 + column, tl.sum(total, 0), mask=row < 3)
