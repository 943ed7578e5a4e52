"""Model A of the paper: for vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import nn

from dre.encoder import Encoder, check_positive_ints, flat_size
from dre.encoder.network import Network, dense_blocks


@dataclass(frozen=True)
class ModelA(Encoder, name="model-a"):
    """Five dense layers, each followed by ReLU and batch norm, then dense 2000 (h1), 500 (h2), 100 (h3) and the map.

    The paper does not give the width of the five; its authors' program uses 500. ``norm`` adds batch norm to h1, h2, h3.
    """

    _: KW_ONLY
    width: int = 500
    depth: int = 5
    norm: bool = False

    def __post_init__(self) -> None:
        check_positive_ints(self, "width", "depth")

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        before = flat_size(shape)
        for _ in range(self.depth):
            layers += [nn.Linear(before, self.width), nn.ReLU(), nn.BatchNorm1d(self.width)]
            before = self.width
        blocks = dense_blocks([before, 2000, 500, 100], norm=nn.BatchNorm1d if self.norm else None)
        return Network(nn.Sequential(*layers), blocks, nn.Linear(100, n_components))
