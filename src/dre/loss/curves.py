"""Curves of the losses: the contribution of a pair as a function of its squared distance in the map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from torch import Tensor
from torch.nn.functional import softplus

SMALLEST_SQUARE = 1e-12  # squared distance at which the logarithm is cut off
STEEPEST_SQUARE = 1e-4  # squared distance below which the slope no longer grows


@dataclass(frozen=True)
class Student:
    """(1 + d²)^-exponent: the similarity of a pair in t-SNE's map."""

    exponent: float

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        base = squared.add_(1)
        if self.exponent == 1:
            value = base.reciprocal()
        elif self.exponent == 0.75:  # roots are faster than powers
            root = base.sqrt()
            value = root.mul_(root.sqrt()).reciprocal_()
        else:
            value = base.pow(-self.exponent)
        return value, (value / base).mul_(-self.exponent)


@dataclass(frozen=True)
class NegLogStudent:
    """exponent · log(1 + d²), the negative logarithm of ``Student``."""

    exponent: float

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        return squared.log1p().mul_(self.exponent), self.exponent / squared.add_(1)


@dataclass(frozen=True)
class LogOdds:
    """log((1 - w) / w) = log a + 2b log d, for UMAP's membership w = 1 / (1 + a·d^2b).

    Coinciding points have neither an infinite loss nor an infinite gradient: the value is cut off at a distance of 1e-6; the
    derivative in d is 2b/d down to a distance of 0.01, and falls to 0 below.
    """

    a: float
    b: float

    @property
    def offset(self) -> float:
        return math.log(self.a)

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        value = squared.clamp_min(SMALLEST_SQUARE).log_().mul_(self.b).add_(self.offset)
        return value, self.b / squared.clamp_min_(STEEPEST_SQUARE)


@dataclass(frozen=True)
class Repulsion:
    """-log(1 - w) of UMAP's membership, computed from the odds and so without cancellation."""

    odds: LogOdds

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        odds, slope = self.odds(squared)
        return softplus(-odds, threshold=40), slope.mul_(odds.sigmoid().sub_(1))


@dataclass(frozen=True)
class Attraction:
    """-log w of UMAP's membership."""

    odds: LogOdds

    def __call__(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        odds, slope = self.odds(squared)
        return softplus(odds, threshold=40), slope.mul_(odds.sigmoid())


@lru_cache(maxsize=64)
def fit_ab(min_dist: float, spread: float) -> tuple[float, float]:
    """Fit a and b so that 1 / (1 + a·d^2b) is close to 1 up to min_dist and to exp(-(d - min_dist) / spread) beyond.

    >>> a, b = fit_ab(0.1, 1.0)
    >>> round(a, 4), round(b, 4)
    (1.5769, 0.8951)
    """
    from scipy.optimize import curve_fit  # scipy comes with scikit-learn; importing it here keeps `import dre` quick

    d = np.linspace(0, 3 * spread, 300)
    wanted = np.where(d < min_dist, 1.0, np.exp(-(d - min_dist) / spread))
    (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), d, wanted)
    return float(a), float(b)
