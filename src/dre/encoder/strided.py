"""Strided convolutions for images: wider than Model B, and cheaper."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import nn

from dre.encoder import Encoder, check_image, check_positive_ints, halved_area
from dre.encoder.network import ChannelsLast, FlattenChannelsLast, Network, dense_blocks


@dataclass(frozen=True)
class Strided(Encoder, name="strided"):
    """Convolutions of stride 2 with batch norm and GELU; then dense 2000 (h1), 500 (h2), 100 (h3) and the output layer.

    Parameters
    ----------
    filters : tuple of int, default=(64, 128)
        Filters of each convolution; each halves the image.

    Examples
    --------
    >>> str(Strided(filters=(32, 64)))
    'strided(filters=32/64)'
    """

    _: KW_ONLY
    filters: tuple[int, ...] = (64, 128)

    capturable = True

    def __post_init__(self) -> None:
        check_positive_ints(self, "filters")

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        layers: list[nn.Module] = [ChannelsLast()]
        before = shape[0]
        for width in self.filters:
            layers += [nn.Conv2d(before, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.GELU()]
            before = width
        features = nn.Sequential(*layers, FlattenChannelsLast())
        size = before * halved_area(shape[1:], len(self.filters))
        blocks = dense_blocks([size, 2000, 500, 100], norm=nn.BatchNorm1d, activation=nn.GELU)
        return Network(features, blocks, nn.Linear(100, n_components))
