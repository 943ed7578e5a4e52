"""A small dense network: fast on a CPU, and sufficient for small data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import chain, repeat

from torch import nn

from dre.encoder import Encoder, check_positive_ints, flat_size
from dre.encoder.network import LayerNorm, Network, dense_blocks
from dre.encoder.pca_front import PCAFront


@dataclass(frozen=True)
class MLP(Encoder, name="mlp"):
    """Dense blocks of equal width with layer norm and ReLU, then the output layer. Images are flattened.

    It uses layer norm because noise is added to the input in training only. The statistics of a batch norm would be those of
    noisy rows, and wrong for the clean rows that are embedded.

    Parameters
    ----------
    width : int, default=256
        Units of each block.
    depth : int, default=3
        Number of blocks, ``h1``, ``h2``, ...
    n_pcs : int, optional
        Read so many principal components of the rows instead of their values; they are the source ``features``.

    Examples
    --------
    >>> str(MLP(128, n_pcs=50))
    'mlp(128, n_pcs=50)'
    """

    width: int = 256
    _: KW_ONLY
    depth: int = 3
    n_pcs: int | None = None

    capturable = True

    def __post_init__(self) -> None:
        check_positive_ints(self, "width", "depth")
        if self.n_pcs is not None:
            check_positive_ints(self, "n_pcs")

    @property
    def first_source(self) -> str:
        return "x" if self.n_pcs is None else "features"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        features = nn.Flatten() if self.n_pcs is None else PCAFront(shape, self.n_pcs)
        before = len(features.axes) if isinstance(features, PCAFront) else flat_size(shape)
        widths = chain([before], repeat(self.width, self.depth))
        return Network(features, dense_blocks(widths, norm=LayerNorm), nn.Linear(self.width, n_components))
