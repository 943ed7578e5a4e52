"""Sums over the pairs of a batch, and their gradients, in memory that does not grow with the square of the batch."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from dre.affinity.target import Pairs
from dre.runtime import triton_applies

# Pairs in a block: few enough to stay in a CPU's cache, many enough to keep a GPU busy.
BLOCK = {"cpu": 2**16, "cuda": 2**24}
MAX_COMPONENTS = 16  # dimensions of a map that the kernels keep in registers


class Curve(Protocol):
    """A function of the squared distance."""

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        """Return values and slopes; ``squared`` may be overwritten."""


def sum_over_pairs(y: Tensor, curve: Curve) -> Tensor:
    """Σ curve(|yi - yj|²) over all pairs i < j of the rows of y (b, c)."""
    total: Tensor = _Sum.apply(y, curve, None)  # type: ignore[no-untyped-call]
    return total


def sum_over_target(y: Tensor, pairs: Pairs, curve: Curve) -> Tensor:
    """Σ weight · curve(|yi - yj|²) over the pairs of the target."""
    total: Tensor = _Sum.apply(y, curve, pairs)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """Computes the gradient in the forward pass, so that nothing of the size of the pairs is kept."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, curve: Curve, pairs: Pairs | None) -> Tensor:
        fused = _fused(y, curve, pairs)
        if fused is not None:
            total, gradient = fused
        elif pairs is None or pairs.near is None:
            total, gradient = _in_blocks(y, curve, None if pairs is None else pairs.weight)
        else:
            total, gradient = _at(y, curve, pairs.near, pairs.weight)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None


def _fused(y: Tensor, curve: Curve, pairs: Pairs | None) -> tuple[Tensor, Tensor] | None:
    """Compute both with one kernel; None if no kernel applies."""
    if y.dtype != torch.float32 or y.shape[1] > MAX_COMPONENTS or not triton_applies(y):
        return None
    from dre.loss.triton import pair_sums as kernels

    code = kernels.code(curve)
    if code is None:
        return None
    y = y.contiguous()
    if pairs is None or pairs.near is None:
        return kernels.over_pairs(y, code, None if pairs is None else pairs.weight.contiguous())
    return kernels.over_near(y, code, pairs.near.contiguous(), pairs.weight.contiguous())


def _in_blocks(y: Tensor, curve: Curve, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Visit each pair once: a block meets itself and the rows after it. The gradient of row i is 2 Σj slope (yi - yj)."""
    y = y - y.mean(0)  # products round least around the origin
    b = len(y)
    rows = max(1, BLOCK.get(y.device.type, BLOCK["cuda"]) // b)
    total, pull = y.new_zeros(()), torch.zeros_like(y)
    for start in range(0, b, rows):
        mine, rest = y[start : start + rows], y[start:]
        r = len(mine)
        value, slope = curve(_squared(mine, rest))
        if weight is None:
            for each in (value, slope):
                each[:, :r].triu_(1)  # pairs within the block count once, and no row pairs with itself
        else:
            part = weight[start : start + rows, start:]
            value, slope = value * part, slope * part
        total += value.sum()
        pull[start : start + r] += slope.sum(1, keepdim=True) * mine - slope @ rest
        pull[start:] += slope.sum(0)[:, None] * rest - slope.T @ mine
    return total, 2 * pull


def _squared(mine: Tensor, rest: Tensor) -> Tensor:
    """Sum squared differences: close pairs matter most in the map, and |a|² + |b|² - 2ab would lose them."""
    squared = (mine[:, None, 0] - rest[None, :, 0]).square_()
    for c in range(1, mine.shape[1]):
        difference = mine[:, None, c] - rest[None, :, c]
        squared.addcmul_(difference, difference)
    return squared


def _at(y: Tensor, curve: Curve, near: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Visit the pairs of each row with those at the positions ``near`` (b, k)."""
    if y.device.type == "cpu":  # most weights are 0: neighbors are rarely in the batch. A GPU would wait for their number
        heads, slots = weight.nonzero(as_tuple=True)
        tails, weight = near[heads, slots], weight[heads, slots]
    else:
        heads = torch.arange(len(y), device=y.device).repeat_interleave(near.shape[1], output_size=near.numel())
        tails, weight = near.ravel(), weight.ravel()
    difference = y[heads] - y[tails]
    value, slope = curve(difference.square().sum(1))
    push = (2 * weight * slope)[:, None] * difference
    gradient = torch.zeros_like(y).index_add_(0, heads, push).index_add_(0, tails, push, alpha=-1)
    return (weight * value).sum(), gradient
