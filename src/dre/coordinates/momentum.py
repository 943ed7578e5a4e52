"""Gradient descent with momentum and gains: the optimizer of all t-SNE programs."""

from __future__ import annotations

import torch
from torch import Tensor

LONGEST = 5.0  # step of a coordinate: no row leaves the map in one


class Momentum:
    """Moves places along gradients. A coordinate whose gradient keeps its sign moves faster, by its gain."""

    def __init__(self, places: Tensor) -> None:
        self._velocity, self._gain = torch.zeros_like(places), torch.ones_like(places)

    def move(self, places: Tensor, gradient: Tensor, lr: float, momentum: float) -> None:
        """Move the places, in place, and keep their mean at the origin."""
        turned = gradient * self._velocity > 0
        self._gain = torch.where(turned, self._gain * 0.8, self._gain + 0.2).clamp_min_(0.01)
        self._velocity = (momentum * self._velocity - lr * self._gain * gradient).clamp_(-LONGEST, LONGEST)
        places += self._velocity
        places -= places.mean(0)
