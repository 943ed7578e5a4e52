"""A loss for the global structure: distances in the map should grow with those in the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.loss import Loss, Step
from dre.loss.pair_sums import BLOCK
from dre.runtime import has_numba, triton_applies
from dre.runtime.float64 import near_float64

TINY = torch.finfo(torch.float32).tiny
ROUNDING = 1e-9  # of the mean square of distances


class Apart(NamedTuple):
    """The rows of a batch, and others from which they have a distance in the map and one in the input."""

    y: Tensor  # (b, c)
    others: Tensor  # (c, m)
    distances: Tensor  # (n, m), in the input
    ids: Tensor  # (b,), rows of ``distances``


@dataclass(frozen=True)
class Shepard(Loss, name="shepard"):
    """1 - r, with the correlation r between the distances of a Shepard diagram: in the input and in the map.

    It is taken between the rows of a batch and the landmarks of a bank, or else all rows of the batch. A part of it beside
    ``kl`` moves clusters and branches as a whole to where they belong, and leaves neighborhoods as they are.
    """

    capturable = True
    reads_bank = True
    reads_landmarks = True

    def __call__(self, step: Step) -> Tensor:
        y, pairs = step.y, step.pairs
        if isinstance(pairs, BankPairs):
            assert pairs.landmarks is not None  # the loop puts them there
            others = pairs.coordinates[:, pairs.landmarks.ids]
            apart = Apart(y.detach(), others, pairs.landmarks.distances, pairs.ids)
        else:
            x = step.x.detach().flatten(1).float()
            apart = Apart(y.detach(), y.detach().T, torch.cdist(x, x), torch.arange(len(x), device=x.device))
        loss: Tensor = _Shepard.apply(y, *_correlate(apart))  # type: ignore[no-untyped-call]
        return loss


class _Shepard(torch.autograd.Function):
    """A loss whose gradient is known. Of each pair it moves one end, and so it counts twice."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, correlation: Tensor, pull: Tensor) -> Tensor:
        # The correlation does not depend on the size of the map, but its gradient does, without a limit while all rows are
        # still at one point.
        size = y.var(correction=0).clamp_max(1.0)
        ctx.save_for_backward(pull * (-2 * size))
        return 1 - correlation

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None


def _correlate(apart: Apart) -> tuple[Tensor, Tensor]:
    """Return the correlation of the distances, and its gradient by the rows of the batch, (b, c).

    Two passes over the pairs: sums of products of both distances, then what they mean for every row.
    """
    y, n = apart.y, len(apart.y) * apart.others.shape[1]
    kernels = _kernels(y)
    sums = _sums(apart) if kernels is None else kernels.sums(*apart)
    d, dd, x, xx, xd = (near_float64(sums).double() / n).unbind()  # means
    var_d, var_x = (dd - d * d).clamp_min(TINY), (xx - x * x).clamp_min(TINY)
    correlation = (xd - x * d) / (var_d * var_x).sqrt()
    # By a distance d of the map, the correlation has the derivative by_x · x - by_d · d + constant.
    by_x, by_d = 1 / (n * (var_d * var_x).sqrt()), correlation / (n * var_d)
    # Distances that differ by rounding have no correlation.
    equal = (var_d <= (ROUNDING * dd).clamp_min(TINY)) | (var_x <= (ROUNDING * xx).clamp_min(TINY))
    correlation, by_x, by_d = (value.masked_fill(equal, 0) for value in (correlation, by_x, by_d))
    slope = torch.stack([by_x, by_d, by_d * d - by_x * x]).to(y)
    pull = _pull(apart, slope) if kernels is None else kernels.pull(*apart, slope)
    return correlation.to(y), pull


def _kernels(y: Tensor) -> Any:
    """The module with kernels for a plane on the device of y; None if there is none."""
    if y.dtype != torch.float32 or y.shape[1] != 2:
        return None
    if triton_applies(y):
        from dre.loss.triton import shepard as kernels_of_triton

        return kernels_of_triton
    if y.device.type == "cpu" and has_numba():
        from dre.loss.numba import shepard as kernels_of_numba

        return kernels_of_numba
    return None


def _blocks(apart: Apart) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield parts of the batch: differences to the others (rows, c, m), distances in the map and in the input (rows, m)."""
    rows = max(1, BLOCK.get(apart.y.device.type, BLOCK["cuda"]) // apart.others.shape[1])
    for y, ids in zip(apart.y.split(rows), apart.ids.split(rows), strict=True):
        differences = y[:, :, None] - apart.others
        yield differences, differences.square().sum(1).sqrt(), apart.distances[ids]


def _sums(apart: Apart) -> Tensor:
    parts = [torch.stack([d.sum(), (d * d).sum(), x.sum(), (x * x).sum(), (x * d).sum()]) for _, d, x in _blocks(apart)]
    return near_float64(torch.stack(parts)).double().sum(0)


def _pull(apart: Apart, slope: Tensor) -> Tensor:
    by_x, by_d, constant = slope.unbind()
    parts = [
        torch.einsum("im,icm->ic", (by_x * x + constant) / d.clamp_min(1e-12) - by_d, differences)
        for differences, d, x in _blocks(apart)
    ]
    return torch.cat(parts)
