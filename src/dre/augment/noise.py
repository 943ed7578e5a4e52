"""Values changed at random: Gaussian noise, the regulariser that small data need, and values left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dre.augment.augmentation import Augment, uniform_like


@dataclass(frozen=True)
class Noise(Augment, name="noise", anywhere=True):
    """Adds noise whose standard deviation is ``sigma`` times that of the data."""

    sigma: float = 0.5

    def __post_init__(self) -> None:
        if self.sigma < 0:
            raise ValueError(f"sigma={self.sigma}: must not be negative")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.empty_like(x).normal_(0.0, self.sigma, generator=generator) if self.sigma else 0.0
        return x + noise


@dataclass(frozen=True)
class Dropout(Augment, name="dropout", anywhere=True):
    """Sets this share of the values to their mean, and leaves the others as they are."""

    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(f"share={self.share}: must be at least 0 and below 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return x * (uniform_like(x, generator, 0, 1, *x.shape[1:]) >= self.share)
