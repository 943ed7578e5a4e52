"""A small dense network behind computed filters: for images, quick on a CPU."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from torch import nn

from dre.encoder import Encoder, check_image, check_positive_ints
from dre.encoder.network import LayerNorm, Network, dense_blocks
from dre.encoder.pca_front import Front, Patches


@dataclass(frozen=True)
class PatchMLP(Encoder, name="patch-mlp"):
    """What computed filters answer in each part of an image, in principal components (``features``), then as in ``mlp``.

    Nothing of the part that looks at images is trained, so that a step costs no more than one on short vectors; and what it
    gives is a better source of neighbours than the pixels alone. ``pixels`` says how much these count in it, beside the answers
    of the filters: more keeps more of the neighbours that pixels have, less puts more weight on what an image shows.
    """

    width: int = 256
    _: KW_ONLY
    depth: int = 3
    filters: int = 16
    front: int = 100
    pixels: float = 1.0

    def __post_init__(self) -> None:
        check_positive_ints(self, "width", "depth", "filters", "front")
        if not 0 <= self.pixels < math.inf:
            raise ValueError(f"pixels={self.pixels}: must be a finite number from 0 up; 0 leaves the pixels out")

    @property
    def first_source(self) -> str:
        return "features"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        front = Front(shape, self.front, Patches(shape[0], self.filters, pixels=self.pixels))
        blocks = dense_blocks([len(front.axes), *[self.width] * self.depth], norm=LayerNorm)
        return Network(front, blocks, nn.Linear(self.width, n_components))
