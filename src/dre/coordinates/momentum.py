"""Gradient descent with momentum and gains: the optimizer of all t-SNE programs."""

from __future__ import annotations

import torch
from torch import Tensor

LONGEST = 5.0  # step of a coordinate: no row leaves the map in one
SMALLEST_GAIN = 0.01


class Momentum:
    """Moves coordinates along gradients. One whose gradient keeps its sign moves faster, by its gain.

    Rows that are ``held``, a mask (n,), stay where they are.
    """

    def __init__(self, coordinates: Tensor, held: Tensor | None = None) -> None:
        self._held = held
        self._velocity, self._gain = torch.zeros_like(coordinates), torch.ones_like(coordinates)

    def move(self, coordinates: Tensor, gradient: Tensor, lr: float, momentum: float) -> None:
        """Move the coordinates, in place, and keep their mean at the origin unless some rows are held."""
        velocity, gain = self._velocity, self._gain  # changed in place: a CUDA graph replays this
        gain.copy_(torch.where(gradient * velocity > 0, gain * 0.8, gain + 0.2)).clamp_min_(SMALLEST_GAIN)
        velocity.mul_(momentum).addcmul_(gain, gradient, value=-lr).clamp_(-LONGEST, LONGEST)
        if self._held is not None:
            velocity.masked_fill_(self._held[:, None], 0.0)
        coordinates.add_(velocity)
        if self._held is None:
            coordinates.sub_(coordinates.mean(0))
