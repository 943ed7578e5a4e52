"""Random warps of images: affine, cropped, elastic and flipped, each image in its own way."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

from dre.augment.augmentation import Augment, uniform_like


@dataclass(frozen=True)
class Affine(Augment, name="affine", reads_images=True):
    """Rotate, translate, scale and shear at random.

    Parameters
    ----------
    degrees : float, default=12.0
        Largest angle of the rotation.
    shift : float, default=0.08
        Largest translation, as a fraction of the image's side.
    scale : float, default=0.1
        Largest relative change of the size, below 1.
    shear : float, default=0.1
        Largest shear.

    Examples
    --------
    >>> str(Affine(5.0, shift=0.0))
    'affine(5.0, shift=0.0)'
    """

    degrees: float = 12.0
    _: KW_ONLY
    shift: float = 0.08
    scale: float = 0.1
    shear: float = 0.1

    capturable = True

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
        matrix = torch.stack([cosine, shear * cosine - sine, sine, shear * sine + cosine], 1).view(-1, 2, 2)
        return warp_affine(x, matrix / size[:, None, None], self.shift * uniform_like(x, generator, -1, 1, 2))


@dataclass(frozen=True)
class Crop(Augment, name="crop", reads_images=True):
    """Crop a random window and resize it to the whole image.

    Parameters
    ----------
    min_side : float, default=0.8
        Smallest side of the window, as a fraction of the image's side.

    Examples
    --------
    >>> str(Crop(0.9))
    'crop(0.9)'
    """

    min_side: float = 0.8

    capturable = True

    def __post_init__(self) -> None:
        if not 0 < self.min_side <= 1:
            raise ValueError(f"min_side={self.min_side}: must be above 0 and at most 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        side = uniform_like(x, generator, self.min_side, 1)
        slack = (1 - side)[:, None] / 2  # by which a centered window can move
        matrix = side[:, None, None] * torch.eye(2, device=x.device)
        return warp_affine(x, matrix, slack * uniform_like(x, generator, -1, 1, 2))


@dataclass(frozen=True)
class Elastic(Augment, name="elastic", reads_images=True):
    """Deform by a smooth random field of displacements.

    Parameters
    ----------
    strength : float, default=0.03
        Standard deviation of the displacements, as a fraction of the image's side.
    knots : int, default=5
        The field interpolates random displacements at ``knots`` × ``knots`` grid points; at least 2.

    Examples
    --------
    >>> str(Elastic(0.05, knots=4))
    'elastic(0.05, knots=4)'
    """

    strength: float = 0.03
    _: KW_ONLY
    knots: int = 5

    capturable = True

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise ValueError(f"strength={self.strength}: must not be negative")
        if self.knots < 2:
            raise ValueError(f"knots={self.knots}: must be at least 2")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        displacements = torch.empty(len(x), 2, self.knots, self.knots, device=x.device).normal_(
            0, 2 * self.strength, generator=generator
        )
        field = interpolate(displacements, size=list(x.shape[2:]), mode="bicubic", align_corners=True)
        return sample_at(x, identity_grid(x) + field.movedim(1, 3))


@dataclass(frozen=True)
class Flip(Augment, name="flip", reads_images=True):
    """Mirror images left to right at random.

    Parameters
    ----------
    p : float, default=0.5
        Probability of each image.

    Examples
    --------
    >>> str(Flip())
    'flip(0.5)'
    """

    p: float = 0.5

    capturable = True

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p={self.p}: must be from 0 to 1")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        mirrored = uniform_like(x, generator, 0, 1) < self.p
        return torch.where(mirrored[:, None, None, None], x.flip(3), x)


def warp_affine(x: Tensor, matrix: Tensor, shift: Tensor) -> Tensor:
    """Read the pixel at p from ``matrix @ p + shift``.

    Parameters
    ----------
    x : Tensor of shape (b, c, h, w)
    matrix : Tensor of shape (b, 2, 2)
        Acts on (x, y) in pixels from the center.
    shift : Tensor of shape (b, 2)
        In sides of the image.

    Returns
    -------
    Tensor of shape (b, c, h, w)
    """
    height, width = x.shape[2:]
    first, second = matrix.unbind(2)  # columns; grid coordinates run from -1 to 1 along either side, however long it is
    x_row = torch.cat([first[:, :1], second[:, :1] * height / width, 2 * shift[:, :1]], 1)
    y_row = torch.cat([first[:, 1:] * width / height, second[:, 1:], 2 * shift[:, 1:]], 1)
    return sample_at(x, affine_grid(torch.stack([x_row, y_row], 1), list(x.shape), align_corners=False))


def sample_at(x: Tensor, grid: Tensor) -> Tensor:
    """Interpolate images (b, c, h, w) at a grid (b, h, w, 2) from -1 to 1; the border continues outside."""
    return grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def identity_grid(x: Tensor) -> Tensor:
    """The grid (b, h, w, 2) that leaves images as they are."""
    identity = torch.eye(2, 3, device=x.device).expand(len(x), 2, 3)
    return affine_grid(identity, list(x.shape), align_corners=False)
