"""Squared distances in the map, and the curve that UMAP lays through them: what the losses share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

SMALLEST_SQUARE, STEEPEST_SQUARE = 1e-12, 1e-4


class _SquaredDistances(torch.autograd.Function):
    """Differences, not a matrix product: in the map close pairs matter most, and |a|² + |b|² - 2ab loses them.

    Backward needs no (b, b, c) tensor either: with S = G + Gᵀ the gradient of row i is 2 Σj Sij (yi - yj).
    """

    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        squared = (y[:, None, 0] - y[None, :, 0]).square_()
        for c in range(1, y.shape[1]):
            squared += (y[:, None, c] - y[None, :, c]).square_()
        return squared

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        y = y - y.mean(0)
        both = grads[0] + grads[0].T
        gradient: Tensor = 2 * (both.sum(1, keepdim=True) * y - both @ y)
        return gradient


def squared_distances(y: Tensor) -> Tensor:
    """(b, b) squared Euclidean distances between the rows of y (b, c)."""
    squared: Tensor = _SquaredDistances.apply(y)  # type: ignore[no-untyped-call]
    return squared


class _LogSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        return squared.clamp_min(SMALLEST_SQUARE).log_()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        squared: Tensor = ctx.saved_tensors[0]
        return grads[0] / squared.clamp_min(STEEPEST_SQUARE)


def log_squared(squared: Tensor) -> Tensor:
    """log d², for which points that lie on each other neither have an infinite loss nor throw the network.

    Its value ends at a distance of 1e-6. Its derivative in d is 2/d down to a distance of 0.01, and falls to 0 below it.
    """
    log: Tensor = _LogSquared.apply(squared)  # type: ignore[no-untyped-call]
    return log


def off_diagonal(values: Tensor, fill: float) -> Tensor:
    return values.masked_fill(torch.eye(len(values), dtype=torch.bool, device=values.device), fill)


@lru_cache(maxsize=64)
def curve(min_dist: float, spread: float) -> tuple[float, float]:
    """a and b such that 1 / (1 + a·d^2b) is nearest to 1 up to min_dist and exp(-(d - min_dist) / spread) beyond.

    >>> a, b = curve(0.1, 1.0)
    >>> round(a, 4), round(b, 4)
    (1.5769, 0.8951)
    """
    from scipy.optimize import curve_fit  # scipy comes with scikit-learn; importing it here keeps `import dre` quick

    d = np.linspace(0, 3 * spread, 300)
    wanted = np.where(d < min_dist, 1.0, np.exp(-(d - min_dist) / spread))
    (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), d, wanted)
    return float(a), float(b)
