"""A part of each image, enlarged to all of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dre.augment import Augment, drawn
from dre.augment.warp import linear


@dataclass(frozen=True)
class Crop(Augment, name="crop", reads_images=True):
    """A window of at least ``smallest`` of each side, anywhere in the image."""

    smallest: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= 1:
            raise ValueError(f"smallest={self.smallest}: must be above 0 and at most 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        side = drawn(x, generator, self.smallest, 1)
        room = (1 - side)[:, None] / 2  # to either side of a window in the middle
        matrix = side[:, None, None] * torch.eye(2, device=x.device)
        return linear(x, matrix, room * drawn(x, generator, -1, 1, 2))
