"""Images read at other places: what turning, bending and cropping share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample


def read_at(x: Tensor, places: Tensor) -> Tensor:
    """Images (b, c, h, w) at places (b, h, w, 2) from -1 to 1, between pixels; beyond the border, the border's."""
    return grid_sample(x, places, mode="bilinear", padding_mode="border", align_corners=False)


def own_places(x: Tensor) -> Tensor:
    """Where each pixel is: (b, h, w, 2)."""
    still = torch.eye(2, 3, device=x.device).expand(len(x), 2, 3)
    return affine_grid(still, list(x.shape), align_corners=False)


def linear(x: Tensor, matrix: Tensor, shift: Tensor) -> Tensor:
    """Images whose pixel at p, in pixels from the middle, comes from matrix @ p (b, 2, 2) + shift (b, 2), in image sizes."""
    half = torch.tensor([x.shape[3] / 2, x.shape[2] / 2], device=x.device)
    scaled = matrix * half[None, None, :] / half[None, :, None]  # places run from -1 to 1 along either side
    return read_at(x, affine_grid(torch.cat([scaled, 2 * shift[:, :, None]], 2), list(x.shape), align_corners=False))
