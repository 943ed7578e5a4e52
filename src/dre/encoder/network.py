"""The structure of all built-in networks: features, dense blocks, output layer; and the layers they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


class Network(nn.Module):
    """Features, then the dense blocks ``h1``, ``h2``, ... (the sources of recursions), then the output layer.

    Parameters
    ----------
    features : nn.Module
        From a row to a vector.
    blocks : sequence of nn.Module
        Registered as ``h1``, ``h2``, ...
    out : nn.Module
        From the last block to the map. Computed in float32 also under autocast: bfloat16 is enough for features, not for
        coordinates.
    scale : Tensor of shape (), optional
        Factor of the output, 1 by default. A stage that starts a map sets it to the extent of that map, so that the weights
        need not grow to it.

    Examples
    --------
    >>> network = Network(nn.Flatten(), dense_blocks([6, 4], norm=None), nn.Linear(4, 2))
    >>> network(torch.zeros(5, 2, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, features: nn.Module, blocks: Sequence[nn.Module], out: nn.Module, scale: Tensor | None = None) -> None:
        super().__init__()
        self.features = features
        for i, block in enumerate(blocks, 1):
            self.add_module(f"h{i}", block)
        self.out = out
        self.scale: Tensor
        self.register_buffer("scale", torch.ones(()) if scale is None else scale)
        self.hidden = [f"h{i}" for i in range(1, len(blocks) + 1)]

    def without_features(self) -> Network:
        """The network that reads the output of the features; it shares its weights with this one."""
        return Network(nn.Identity(), [self.get_submodule(name) for name in self.hidden], self.out, self.scale)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        for name in self.hidden:
            x = self.get_submodule(name)(x)
        with without_autocast(x):
            y: Tensor = self.out(x.float()) * self.scale
        return y

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        state_dict.setdefault(f"{prefix}scale", torch.ones_like(self.scale))  # files from before there was one
        super()._load_from_state_dict(state_dict, prefix, *rest)


def dense_blocks(
    widths: Iterable[int], *, norm: Callable[[int], nn.Module] | None, activation: Callable[[], nn.Module] = nn.ReLU
) -> list[nn.Module]:
    """Dense blocks between consecutive widths: a linear layer, an optional norm, an activation.

    Parameters
    ----------
    widths : iterable of int
        The width of the input, then that of each block.
    norm : callable or None
        From a width to a norm layer, ``nn.BatchNorm1d`` for example.
    activation : callable, default=nn.ReLU

    Returns
    -------
    list of nn.Module
        One less than there are widths.
    """
    blocks: list[nn.Module] = []
    for before, after in pairwise(widths):
        norms = [norm(after)] if norm is not None else []
        blocks.append(nn.Sequential(nn.Linear(before, after), *norms, activation()))
    return blocks


class LayerNorm(nn.LayerNorm):
    """Layer norm in the precision of its input.

    Autocast would compute it in float32, at twice the cost; the sums inside are in float32 anyway.
    """

    def forward(self, x: Tensor) -> Tensor:
        with without_autocast(x):
            return layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class ChannelsLast(nn.Module):
    """Images in the memory format in which a GPU convolves fastest; unchanged on other devices.

    The strides are set explicitly: for images of one channel both formats agree, and torch would choose the slower kernel.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cuda":
            return x
        _, c, h, w = x.shape
        x = x.contiguous(memory_format=torch.channels_last)
        return x.as_strided(x.shape, (c * h * w, 1, c * w, c))


class FlattenChannelsLast(nn.Module):
    """Flatten images (n, c, h, w) pixel by pixel, as they lie in a GPU's memory, so that nothing is copied there."""

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1).flatten(1)


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """A context without autocast on the device of x; nothing at all where it is off, which keeps exported graphs flat."""
    if not torch.is_autocast_enabled(x.device.type):
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
