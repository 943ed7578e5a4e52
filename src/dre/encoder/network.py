"""The form that all our networks have, features, dense blocks and the map, and the layers that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


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
