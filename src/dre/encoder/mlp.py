"""A small dense network: quick on a CPU, and enough for small data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import nn

from dre.encoder import Encoder, check_positive_ints, flat_size
from dre.encoder.network import LayerNorm, Network, dense_blocks
from dre.encoder.pca_front import Front


@dataclass(frozen=True)
class MLP(Encoder, name="mlp"):
    """``depth`` dense blocks (h1, h2, ...) of equal width with layer norm and ReLU, then the map. Images are flattened.

    With ``front`` it sees so many principal components of the rows in place of their values; ``features`` is the source that
    has them.

    Layer norm, since noise on the input is for training only: the statistics of a batch norm would be those of noisy rows, and
    wrong for the clean ones that are embedded.
    """

    width: int = 256
    _: KW_ONLY
    depth: int = 3
    front: int | None = None

    def __post_init__(self) -> None:
        check_positive_ints(self, "width", "depth")
        if self.front is not None:
            check_positive_ints(self, "front")

    @property
    def first_source(self) -> str:
        return "x" if self.front is None else "features"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        features = nn.Flatten() if self.front is None else Front(shape, self.front)
        before = len(features.axes) if isinstance(features, Front) else flat_size(shape)
        widths = [before, *[self.width] * self.depth]
        return Network(features, dense_blocks(widths, norm=LayerNorm), nn.Linear(self.width, n_components))
