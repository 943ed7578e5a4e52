"""Images made brighter or darker, with more or less contrast, each channel in its own way."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from dre.augment.augmentation import Augment, uniform_like


@dataclass(frozen=True)
class Color(Augment, name="color", reads_images=True):
    """Moves each channel by up to ``brightness`` standard deviations of the data, and stretches it by up to ``contrast``."""

    brightness: float = 0.2
    _: KW_ONLY
    contrast: float = 0.2

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: must lie between 0 and 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        channels = (x.shape[1], 1, 1)
        stretch = 1 + self.contrast * uniform_like(x, generator, -1, 1, *channels)
        return x * stretch + self.brightness * uniform_like(x, generator, -1, 1, *channels)
