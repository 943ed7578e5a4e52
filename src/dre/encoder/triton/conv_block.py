"""A convolution with batch norm, ReLU and pooling in few passes over memory, forward and backward, for a GPU. Needs Triton."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dre.encoder.triton.conv_backward import Kept, multiply_gradient
from dre.encoder.triton.conv_forward import Cut, convolve, convolve_and_activate, convolve_and_sum, fold, spread
from dre.encoder.triton.conv_norm import Norm, activate, statistics, total_gradients


def conv_block(
    x: Tensor, weight: Tensor, bias: Tensor, norm: tuple[Tensor, Tensor, Tensor, Tensor, float, float] | None, *, pool: bool
) -> Tensor:
    """ReLU of a 3×3 convolution of x (b, h, w, cin) in bfloat16, between batch norm and 2×2 pooling where asked for.

    ``norm``: what ``Norm`` lists, in its order. The kernels count in 32 bits: b·h·w·c is below 2³¹.
    """
    out: Tensor = ConvBlock.apply(x.contiguous(), weight, bias, pool, *(norm or ()))  # type: ignore[no-untyped-call]
    return out


class ConvBlock(torch.autograd.Function):
    """With the six of ``norm`` one by one, if at all: torch finds no gradients for what is inside a tuple."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, pool: bool, *norm: Any) -> Tensor:
        cut = Cut.of(x.shape[3], weight.shape[0])
        matrices, flipped = spread(weight, cut, x, flip=ctx.needs_input_grad[0])
        if norm:
            z, sums = convolve_and_sum(x, matrices, cut)
            table = statistics(sums, bias, Norm(*norm), count=z.numel() // cut.COUT)
            out, peaks, places = activate(z, table, pool=pool)
        else:
            out, places = convolve_and_activate(x, matrices, bias, cut, pool=pool)
            z, table, peaks = out, None, out
        ctx.save_for_backward(*Kept(x, z, peaks, places, table, flipped))
        ctx.pool = pool
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        kept, gradient, wants_x = Kept(*ctx.saved_tensors), gradient.contiguous(), ctx.needs_input_grad[0]
        cin, cout = kept.x.shape[3], gradient.shape[3]
        cut = Cut.of(cin, cout)
        totals = None if kept.table is None else total_gradients(kept.peaks, gradient, kept.table)
        inner, parts, bias_parts = multiply_gradient(kept, gradient, totals, cut, pool=ctx.pool, keep=wants_x)
        d_weight = fold(parts, cut)
        d_x = convolve(inner, kept.flipped, Cut.of(cout, cin)) if wants_x else None
        if totals is None:
            return d_x, d_weight, bias_parts.sum((0, 1)), None
        d_beta, d_gamma, d_bias = totals
        return d_x, d_weight, d_bias, None, d_gamma, d_beta, None, None, None, None
