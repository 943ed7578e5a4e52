"""Fixed filters computed from patches of the images, then a small dense network: for images, fast on a CPU."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import chain, repeat

from torch import nn

from dre.encoder import Encoder, check_image, check_positive_ints
from dre.encoder.network import LayerNorm, Network, dense_blocks
from dre.encoder.pca_front import PatchFilters, PCAFront


@dataclass(frozen=True)
class PatchMLP(Encoder, name="patch-mlp"):
    """Responses of patch filters in each region of an image, their principal components (``features``), then an ``mlp``.

    The part that reads images is computed, not trained, so a step costs no more than one on short vectors. Its output is a
    better source of neighbors than the pixels alone.

    Parameters
    ----------
    width : int, default=256
        Units of each dense block.
    depth : int, default=3
        Number of dense blocks, ``h1``, ``h2``, ...
    filters : int, default=16
        Number of patch filters.
    n_pcs : int, default=100
        Number of principal components.
    pixel_weight : float, default=1.0
        Weight of the pixels beside the filter responses. More preserves more of the neighbors in pixel space, less relies on
        the content of the images; 0 omits the pixels.

    Examples
    --------
    >>> str(PatchMLP(512, n_pcs=200))
    'patch-mlp(512, n_pcs=200)'
    """

    width: int = 256
    _: KW_ONLY
    depth: int = 3
    filters: int = 16
    n_pcs: int = 100
    pixel_weight: float = 1.0

    capturable = True

    def __post_init__(self) -> None:
        check_positive_ints(self, "width", "depth", "filters", "n_pcs")
        if not 0 <= self.pixel_weight < math.inf:
            raise ValueError(f"pixel_weight={self.pixel_weight}: must be finite and at least 0; 0 omits the pixels")

    @property
    def first_source(self) -> str:
        return "features"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        front = PCAFront(shape, self.n_pcs, PatchFilters(shape[0], self.filters, pixel_weight=self.pixel_weight))
        blocks = dense_blocks(chain([len(front.axes)], repeat(self.width, self.depth)), norm=LayerNorm)
        return Network(front, blocks, nn.Linear(self.width, n_components))
