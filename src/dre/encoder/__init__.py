"""Networks from a row to its place in the map, as plans that are built when the shape of the data is known.

To add one, write a file here with a frozen dataclass like those beside it. Any ``nn.Module`` works as an encoder too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from dre.notation import Family, write

ENCODERS = Family("encoder", __name__)


class Encoder:
    """A plan of a network; ``build`` makes it for rows of a shape, (d,) or (channels, height, width).

    The submodules ``h1``, ``h2``, ... are the sources that recursions read.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        ENCODERS.add(name, cls)

    def __post_init__(self) -> None:
        for name in ("width", "depth", "filters", "front"):
            value = getattr(self, name, None)
            if value is not None and min(value if isinstance(value, tuple) else (value,), default=0) < 1:
                raise ValueError(f"{name}={value}: must be at least 1")

    @property
    def first_source(self) -> str:
        """Where a recipe finds its first neighbours: in the rows, or in what a computed front gives."""
        return "x"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


class Network(nn.Module):
    """Features, then the dense blocks h1, h2, ... that recursions read, then the map."""

    def __init__(self, features: nn.Module, blocks: Sequence[nn.Module], out: nn.Module) -> None:
        super().__init__()
        self.features = features
        for i, block in enumerate(blocks, 1):
            self.add_module(f"h{i}", block)
        self.out = out
        self._hidden = [f"h{i}" for i in range(1, len(blocks) + 1)]

    def behind(self) -> Network:
        """The same network, without the features: what they give is what it reads."""
        return Network(nn.Identity(), [self.get_submodule(name) for name in self._hidden], self.out)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        for name in self._hidden:
            x = self.get_submodule(name)(x)
        with torch.autocast(x.device.type, enabled=False):  # eight bits are enough for features, not for places in the map
            y: Tensor = self.out(x.float())
        return y


def dense_blocks(
    widths: Sequence[int], *, norm: Callable[[int], nn.Module] | None, activation: Callable[[], nn.Module] = nn.ReLU
) -> list[nn.Module]:
    """One block per step of ``widths``: dense, a norm if asked for, an activation."""
    blocks: list[nn.Module] = []
    for before, after in pairwise(widths):
        middle = [norm(after)] if norm is not None else []
        blocks.append(nn.Sequential(nn.Linear(before, after), *middle, activation()))
    return blocks


class LayerNorm(nn.LayerNorm):
    """In the precision of what it is given: autocast would lengthen it, at twice the cost. Its sums are in full anyway."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class ChannelsLast(nn.Module):
    """Images as convolutions on a GPU like them; those of one channel lie in memory both ways, and torch takes the slower."""

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cuda":
            return x
        _, c, h, w = x.shape
        x = x.contiguous(memory_format=torch.channels_last)
        return x.as_strided(x.shape, (c * h * w, 1, c * w, c))


class Flat(nn.Module):
    """Images (n, c, h, w) as vectors, channel by channel within each pixel: on a GPU that is how they lie in memory."""

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1).flatten(1)


def flat_size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def check_image(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise ValueError(
            f"{name} reads images, but the rows are vectors of {flat_size(shape)} values: "
            "reshape X to (n, height, width), or use model-a or mlp"
        )
