"""Model B of the paper: for images."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import nn

from dre.encoder import Encoder, at_least_one, check_image
from dre.encoder.convolved import Convolved
from dre.encoder.layers import ChannelsLast, Flat
from dre.encoder.network import Network, dense_blocks


@dataclass(frozen=True)
class ModelB(Encoder, name="model-b"):
    """Two convolutions of 16 filters, pooling, two of 32, pooling; then dense 2000 (h1), 500 (h2), 100 (h3) and the map.

    ``norm`` adds batch norm before every ReLU; the paper has none here.
    """

    _: KW_ONLY
    filters: tuple[int, ...] = (16, 32)
    norm: bool = False

    def __post_init__(self) -> None:
        at_least_one(self, "filters")

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        layers: list[nn.Module] = [ChannelsLast()]
        before = shape[0]
        for width in self.filters:
            layers += [Convolved(before, width, norm=self.norm), Convolved(width, width, norm=self.norm, pool=True)]
            before = width
        features = nn.Sequential(*layers, Flat())
        with torch.no_grad():
            size = features.eval()(torch.zeros(1, *shape)).shape[1]
        blocks = dense_blocks([size, 2000, 500, 100], norm=nn.BatchNorm1d if self.norm else None)
        return Network(features.train(), blocks, nn.Linear(100, n_components))
