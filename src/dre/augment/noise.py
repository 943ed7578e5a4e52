"""Gaussian noise on the input: the regulariser that small data need."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dre.augment import Augment


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
