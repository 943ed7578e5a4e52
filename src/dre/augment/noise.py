"""Gaussian noise, the regularizer of small data, in units of the data or of each row's neighborhood; dropout of values."""

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
class LocalNoise(Augment, name="local-noise", on_features=True):
    """Add Gaussian noise in units of each row's own neighborhood, so that one value suits data of any density.

    Its expected length is ``size`` times the distance of the row to its tenth neighbor, whatever the number of columns.

    Parameters
    ----------
    size : float, default=0.5

    Examples
    --------
    >>> str(LocalNoise(1.0))
    'local-noise(1.0)'
    """

    size: float = 0.5

    reads_radius = True
    capturable = True

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size={self.size}: must not be negative")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        raise TypeError(f"{self} needs the distance of each row to its tenth neighbor: call change(x, generator, radius)")

    def change(self, x: Tensor, generator: torch.Generator, radius: Tensor | None) -> Tensor:
        if radius is None:
            return self(x, generator)
        std = (self.size * radius / x[0].numel() ** 0.5).view(-1, *[1] * (x.ndim - 1))
        return torch.addcmul(x, std, torch.empty_like(x).normal_(generator=generator))


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
