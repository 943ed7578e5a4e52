"""Model A of the paper: a dense network for vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import nn

from dre.encoder import Encoder, check_positive_ints, flat_size
from dre.encoder.network import Network, dense_blocks


@dataclass(frozen=True)
class ModelA(Encoder, name="model-a"):
    """Five dense layers with ReLU and batch norm, then dense 2000 (h1), 500 (h2), 100 (h3) and the output layer.

    Parameters
    ----------
    width : int, default=500
        Units of the first layers. The paper does not give it; its authors' program uses 500.
    depth : int, default=5
        Number of the first layers.
    norm : bool, default=False
        Add batch norm to h1, h2 and h3.

    Examples
    --------
    >>> str(ModelA(norm=True))
    'model-a(norm=true)'
    """

    _: KW_ONLY
    width: int = 500
    depth: int = 5
    norm: bool = False

    capturable = True

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
