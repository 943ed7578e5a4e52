"""Images bent by a smooth random field, each by its own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from dre.augment import Augment
from dre.augment.warp import own_places, read_at


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
