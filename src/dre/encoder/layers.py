"""Layers that torch has not, or has slower: a short layer norm, and images as a GPU likes them in memory."""

from __future__ import annotations

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
