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
    height, width = x.shape[2:]
    across, down = matrix.unbind(2)  # places run from -1 to 1 along either side, however long it is
    along = torch.cat([across[:, :1], down[:, :1] * height / width, 2 * shift[:, :1]], 1)
    upright = torch.cat([across[:, 1:] * width / height, down[:, 1:], 2 * shift[:, 1:]], 1)
    return read_at(x, affine_grid(torch.stack([along, upright], 1), list(x.shape), align_corners=False))
