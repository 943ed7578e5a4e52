"""Convolutions that stride instead of pooling: fewer and wider operations than Model B, and better maps of images."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import nn

from dre.encoder import Encoder, Network, check_image, dense_blocks


@dataclass(frozen=True)
class Strided(Encoder, name="strided"):
    """One stride-2 convolution per entry of ``filters``, with batch norm and GELU; then dense 2000 (h1), 500 (h2), 100 (h3)."""

    _: KW_ONLY
    filters: tuple[int, ...] = (64, 128)

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        layers: list[nn.Module] = []
        before = shape[0]
        for width in self.filters:
            layers += [nn.Conv2d(before, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.GELU()]
            before = width
        features = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            size = features.eval()(torch.zeros(1, *shape)).shape[1]
        return Network(features.train(), dense_blocks([size, 2000, 500, 100], norm=True), nn.Linear(100, n_components))
