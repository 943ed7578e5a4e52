"""Sums of a batch against the bank of all rows, and their gradients, in memory that does not grow with their product."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.loss.curves import Student
from dre.loss.grid_sums import sum_on_grid
from dre.loss.pair_sums import BLOCK, MAX_COMPONENTS, Curve
from dre.runtime import has_numba, triton_applies
from dre.runtime.float64 import near_float64

Sums = tuple[Tensor, Tensor]  # of the values, and Σj slope (yi - yj) of every row (b, c)


def sum_over_bank(y: Tensor, pairs: BankPairs, curve: Curve) -> Tensor:
    """Estimate Σ curve(|yi - yj|²) over i ≠ j of all n rows, from the rows y (b, c) of the batch and the coordinates of all."""
    total: Tensor = _BankSum.apply(y, pairs, *_all_rows(y.detach(), pairs, curve))  # type: ignore[no-untyped-call]
    return total


def sum_over_neighbors(y: Tensor, pairs: BankPairs, curve: Curve) -> Tensor:
    """Estimate Σ wij · curve(|yi - yj|²) over the links of all n rows."""
    total: Tensor = _BankSum.apply(y, pairs, *_neighbors(y.detach(), pairs, curve))  # type: ignore[no-untyped-call]
    return total * pairs.exaggeration


class _Kernels(Protocol):
    """A module of kernels; both functions return None for a curve that they don't know."""

    def all_rows(self, y: Tensor, pairs: BankPairs, curve: object) -> Sums | None: ...

    def neighbors(self, y: Tensor, pairs: BankPairs, curve: object) -> Sums | None: ...


class _BankSum(torch.autograd.Function):
    """Sums whose gradient is known. It counts each pair twice, since it moves both of its ends."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, pairs: BankPairs, total: Tensor, pull: Tensor) -> Tensor:
        share = pairs.coordinates.shape[1] / len(y)
        ctx.save_for_backward(pull * (4 * share))
        return total * share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None, None


def _all_rows(y: Tensor, pairs: BankPairs, curve: Curve) -> Sums:
    if pairs.on_grid and isinstance(curve, Student) and y.shape[1] == 2:
        total, pull = sum_on_grid(near_float64(y), curve)  # sums the values in float64
        return total.to(y.device), pull.to(y.device)
    kernels = _kernels(y, pairs)
    if kernels is not None and (found := kernels.all_rows(y.contiguous(), pairs, curve)) is not None:
        return found
    n = pairs.coordinates.shape[1]
    visited = torch.arange(-(-n // pairs.every), device=y.device) * pairs.every + pairs.first  # the last may lie outside
    coordinates = pairs.coordinates[:, visited.clamp_max(n - 1)].T
    rows = max(1, BLOCK.get(y.device.type, BLOCK["cuda"]) // len(coordinates))
    total, pull = y.new_zeros(()), torch.empty_like(y)
    for start in range(0, len(y), rows):
        mine, ids = y[start : start + rows], pairs.ids[start : start + rows, None]
        apart = mine[:, None] - coordinates
        value, slope = curve(apart.square().sum(2))
        skipped = (ids == visited) | (visited >= n)  # a row does not meet itself
        value, slope = (each.masked_fill_(skipped, 0.0) for each in (value, slope))
        total += value.sum()
        pull[start : start + rows] = torch.einsum("ij,ijc->ic", slope, apart)
    return total * pairs.every, pull * pairs.every


def _neighbors(y: Tensor, pairs: BankPairs, curve: Curve) -> Sums:
    kernels = _kernels(y, pairs)
    if kernels is not None and (found := kernels.neighbors(y.contiguous(), pairs, curve)) is not None:
        return found
    first, count = pairs.start[pairs.ids], pairs.start[pairs.ids + 1] - pairs.start[pairs.ids]
    heads = torch.arange(len(y), device=y.device).repeat_interleave(count)
    slots = torch.arange(len(heads), device=y.device) - (count.cumsum(0) - count - first)[heads]
    weight, tails = pairs.weight[slots], pairs.others[slots].long()
    apart = y[heads] - pairs.coordinates.T[tails]
    value, slope = curve(apart.square().sum(1))
    pull = torch.zeros_like(y).index_add_(0, heads, (weight * slope)[:, None] * apart)
    return (weight * value).sum(), pull


def _kernels(y: Tensor, pairs: BankPairs) -> _Kernels | None:
    """The module with kernels for the device of y; None if there is none."""
    if y.dtype != torch.float32 or pairs.coordinates.dtype != torch.float32 or pairs.weight.dtype != torch.float32:
        return None
    if triton_applies(y) and y.shape[1] <= MAX_COMPONENTS:
        from dre.loss.triton import bank_sums as kernels_of_triton

        return kernels_of_triton
    if y.device.type == "cpu" and has_numba():
        from dre.loss.numba import bank_sums as kernels_of_numba

        return kernels_of_numba
    return None
