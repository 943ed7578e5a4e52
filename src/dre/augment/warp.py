"""Images read at other places: turned, moved, enlarged, sheared, cropped, bent and mirrored, each in its own way."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

from dre.augment.augmentation import Augment, uniform_like


def read_at(x: Tensor, places: Tensor) -> Tensor:
    """Images (b, c, h, w) at places (b, h, w, 2) from -1 to 1, between pixels; beyond the border, the border's."""
    return grid_sample(x, places, mode="bilinear", padding_mode="border", align_corners=False)


def own_places(x: Tensor) -> Tensor:
    """Where each pixel is: (b, h, w, 2)."""
    still = torch.eye(2, 3, device=x.device).expand(len(x), 2, 3)
    return affine_grid(still, list(x.shape), align_corners=False)


def linear(x: Tensor, matrix: Tensor, shift: Tensor) -> Tensor:
    """Images whose pixel at p, in pixels from the middle, comes from matrix @ p (b, 2, 2) + shift (b, 2), in image sizes."""
    height, width = x.shape[2:]
    across, down = matrix.unbind(2)  # places run from -1 to 1 along either side, however long it is
    along = torch.cat([across[:, :1], down[:, :1] * height / width, 2 * shift[:, :1]], 1)
    upright = torch.cat([across[:, 1:] * width / height, down[:, 1:], 2 * shift[:, 1:]], 1)
    return read_at(x, affine_grid(torch.stack([along, upright], 1), list(x.shape), align_corners=False))


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
        angle = uniform_like(x, generator, -1, 1) * math.radians(self.degrees)
        size = 1 + self.scale * uniform_like(x, generator, -1, 1)
        shear = self.shear * uniform_like(x, generator, -1, 1)
        cosine, sine = angle.cos(), angle.sin()
        turned = torch.stack([cosine, shear * cosine - sine, sine, shear * sine + cosine], 1).view(-1, 2, 2)
        return linear(x, turned / size[:, None, None], self.shift * uniform_like(x, generator, -1, 1, 2))


@dataclass(frozen=True)
class Crop(Augment, name="crop", reads_images=True):
    """A window of at least ``smallest`` of each side, anywhere in the image."""

    smallest: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= 1:
            raise ValueError(f"smallest={self.smallest}: must be above 0 and at most 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        side = uniform_like(x, generator, self.smallest, 1)
        room = (1 - side)[:, None] / 2  # to either side of a window in the middle
        matrix = side[:, None, None] * torch.eye(2, device=x.device)
        return linear(x, matrix, room * uniform_like(x, generator, -1, 1, 2))


@dataclass(frozen=True)
class Elastic(Augment, name="elastic", reads_images=True):
    """Every place moves by about ``strength`` of a side, like its surroundings: ``knots`` x ``knots`` of them move freely."""

    strength: float = 0.03
    _: KW_ONLY
    knots: int = 5

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise ValueError(f"strength={self.strength}: must not be negative")
        if self.knots < 2:
            raise ValueError(f"knots={self.knots}: at least 2")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        moves = torch.empty(len(x), 2, self.knots, self.knots, device=x.device).normal_(
            0, 2 * self.strength, generator=generator
        )
        field = interpolate(moves, size=list(x.shape[2:]), mode="bicubic", align_corners=True)
        return read_at(x, own_places(x) + field.movedim(1, 3))


@dataclass(frozen=True)
class Flip(Augment, name="flip", reads_images=True):
    """Mirrors this share of the images."""

    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share={self.share}: must lie between 0 and 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        mirrored = uniform_like(x, generator, 0, 1) < self.share
        return torch.where(mirrored[:, None, None, None], x.flip(3), x)
