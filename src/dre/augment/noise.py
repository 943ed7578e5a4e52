"""Gaussian noise, the regularizer of small data, and dropout of values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dre.augment.augmentation import Augment, uniform_like


@dataclass(frozen=True)
class Noise(Augment, name="noise", on_features=True):
    """Add Gaussian noise.

    Parameters
    ----------
    sigma : float, default=0.5
        Standard deviation, as a multiple of that of the data.

    Examples
    --------
    >>> str(Noise(0.1))
    'noise(0.1)'
    """

    sigma: float = 0.5

    capturable = True

    def __post_init__(self) -> None:
        if self.sigma < 0:
            raise ValueError(f"sigma={self.sigma}: must not be negative")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.empty_like(x).normal_(0.0, self.sigma, generator=generator) if self.sigma else 0.0
        return x + noise


@dataclass(frozen=True)
class Dropout(Augment, name="dropout", on_features=True):
    """Set random values to their mean; the others are not rescaled.

    Parameters
    ----------
    p : float, default=0.2
        Probability of each value.

    Examples
    --------
    >>> str(Dropout(0.5))
    'dropout(0.5)'
    """

    p: float = 0.2

    capturable = True

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise ValueError(f"p={self.p}: must be at least 0 and below 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return x * (uniform_like(x, generator, 0, 1, *x.shape[1:]) >= self.p)
