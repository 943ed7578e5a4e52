"""A fused block for training: 3×3 convolution, batch norm, ReLU and pooling in few passes over memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dre.encoder.triton.conv_backward import SavedTensors, conv_gradients
from dre.encoder.triton.conv_forward import (
    Tiling,
    convolve,
    convolve_and_activate,
    convolve_and_sum,
    expand_filters,
    reduce_filter_gradient,
)
from dre.encoder.triton.conv_norm import BatchNormParameters, activate, batch_statistics, norm_gradients


def fused_conv_block(
    x: Tensor, weight: Tensor, bias: Tensor, norm: tuple[Tensor, Tensor, Tensor, Tensor, float, float] | None, *, pool: bool
) -> Tensor:
    """Convolve with 3×3 filters, normalize, apply ReLU and pool.

    Parameters
    ----------
    x : Tensor of shape (b, h, w, cin), bfloat16
        The kernels index with 32 bits: b·h·w·c must be below 2³¹.
    weight : Tensor of shape (cout, cin, 3, 3)
    bias : Tensor of shape (cout,)
    norm : tuple or None
        The fields of ``BatchNormParameters``, in their order; None: no batch norm.
    pool : bool
        Pool the maxima of 2×2 windows.

    Returns
    -------
    Tensor of shape (b, h, w, cout), or half as high and wide with pooling, bfloat16
    """
    out: Tensor = FusedConvFunction.apply(x.contiguous(), weight, bias, pool, *(norm or ()))  # type: ignore[no-untyped-call]
    return out


class FusedConvFunction(torch.autograd.Function):
    """The block with its gradient. Torch differentiates no tuples, so the six values of ``norm`` are separate arguments."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, pool: bool, *norm: Any) -> Tensor:
        tiling = Tiling.of(x.shape[3], weight.shape[0])
        matrices, flipped = expand_filters(weight, tiling, x, flip=ctx.needs_input_grad[0])
        if norm:
            z, sums = convolve_and_sum(x, matrices, tiling)
            table = batch_statistics(sums, bias, BatchNormParameters(*norm), count=z.numel() // tiling.COUT)
            out, z_max, argmax = activate(z, table, pool=pool)
        else:
            out, argmax = convolve_and_activate(x, matrices, bias, tiling, pool=pool)
            z, table, z_max = out, None, out
        ctx.save_for_backward(*SavedTensors(x, z, z_max, argmax, table, flipped))
        ctx.pool = pool
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved, gradient, needs_x = SavedTensors(*ctx.saved_tensors), gradient.contiguous(), ctx.needs_input_grad[0]
        cin, cout = saved.x.shape[3], gradient.shape[3]
        tiling = Tiling.of(cin, cout)
        d_norm = None if saved.table is None else norm_gradients(saved.z_max, gradient, saved.table)
        d_z, d_matrices, d_bias_parts = conv_gradients(saved, gradient, d_norm, tiling, pool=ctx.pool, write_d_z=needs_x)
        d_weight = reduce_filter_gradient(d_matrices, tiling)
        d_x = convolve(d_z, saved.flipped, Tiling.of(cout, cin)) if needs_x else None
        if d_norm is None:
            return d_x, d_weight, d_bias_parts.sum((0, 1)), None
        d_beta, d_gamma, d_bias = d_norm
        return d_x, d_weight, d_bias, None, d_gamma, d_beta, None, None, None, None
