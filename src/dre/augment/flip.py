"""Some images mirrored, left to right."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dre.augment import Augment, drawn


@dataclass(frozen=True)
class Flip(Augment, name="flip", reads_images=True):
    """Mirrors this share of the images."""

    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share={self.share}: must lie between 0 and 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        mirrored = drawn(x, generator, 0, 1) < self.share
        return torch.where(mirrored[:, None, None, None], x.flip(3), x)
