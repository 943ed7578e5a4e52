"""Images turned, moved, enlarged and sheared a little, each in its own way."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from dre.augment import Augment, drawn
from dre.augment.warp import linear


@dataclass(frozen=True)
class Affine(Augment, name="affine", reads_images=True):
    """Turns by up to ``degrees``, moves by up to the share ``shift`` of a side, enlarges by ``scale``, shears by ``shear``."""

    degrees: float = 12.0
    _: KW_ONLY
    shift: float = 0.08
    scale: float = 0.1
    shear: float = 0.1

    def __post_init__(self) -> None:
        for name in ("degrees", "shift", "scale", "shear"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)}: must not be negative")
        if self.scale >= 1:
            raise ValueError(f"scale={self.scale}: must be below 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        angle = drawn(x, generator, -1, 1) * math.radians(self.degrees)
        size = 1 + self.scale * drawn(x, generator, -1, 1)
        shear = self.shear * drawn(x, generator, -1, 1)
        cosine, sine = angle.cos(), angle.sin()
        turned = torch.stack([cosine, shear * cosine - sine, sine, shear * sine + cosine], 1).view(-1, 2, 2)
        return linear(x, turned / size[:, None, None], self.shift * drawn(x, generator, -1, 1, 2))
