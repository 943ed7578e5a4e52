"""Random brightness and contrast of images, for each channel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from dre.augment.augmentation import Augment, uniform_like


@dataclass(frozen=True)
class Color(Augment, name="color", reads_images=True):
    """Change the brightness and contrast of each channel at random.

    Parameters
    ----------
    brightness : float, default=0.2
        Largest shift, in standard deviations of the data.
    contrast : float, default=0.2
        Largest relative change of the scale.

    Examples
    --------
    >>> str(Color(0.1, contrast=0.3))
    'color(0.1, contrast=0.3)'
    """

    brightness: float = 0.2
    _: KW_ONLY
    contrast: float = 0.2

    capturable = True

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: must be at least 0 and below 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        channels = (x.shape[1], 1, 1)
        scale = 1 + self.contrast * uniform_like(x, generator, -1, 1, *channels)
        return x * scale + self.brightness * uniform_like(x, generator, -1, 1, *channels)
