"""The decoder that mirrors an encoder: its layers turned round, in reverse."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dre.encoder.forward import evaluating
from dre.encoder.network import ChannelsLast, FlattenChannelsLast
from dre.encoder.pca_front import PCAFront

POOLS = (nn.MaxPool2d, nn.AvgPool2d)
UNCHANGED = (nn.Identity, ChannelsLast)  # what a row passes as it is


class Layer(NamedTuple):
    """A module without parts, and the shapes of one row before and after it."""

    module: nn.Module
    before: torch.Size
    after: torch.Size


def mirrored(encoder: nn.Module, shape: tuple[int, ...]) -> nn.Sequential:
    """From the map back to rows of the shape (d,) or (channels, height, width).

    >>> encoder = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 2))
    >>> mirrored(encoder, (1, 3, 4))
    Sequential(
      (0): Linear(in_features=2, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=12, bias=True)
      (3): Unflatten(dim=1, unflattened_size=torch.Size([1, 3, 4]))
    )
    """
    if any(isinstance(module, PCAFront) for module in encoder.modules()):
        raise ValueError(
            "the encoder has a computed front, and a decoder can't turn it round: "
            "use an encoder that reads the rows themselves, such as model-a, model-b or mlp without n_pcs"
        )
    passed = (layer for layer in reversed(layers_of(encoder, shape)) if not isinstance(layer.module, UNCHANGED))
    return nn.Sequential(*(_turned(layer) for layer in passed))


def layers_of(encoder: nn.Module, shape: tuple[int, ...]) -> list[Layer]:
    """What a row passes through, in the order of the forward pass."""
    seen: list[Layer] = []

    def note(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append(Layer(module, given[0].shape[1:], out.shape[1:]))

    leaves = [module for module in encoder.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(note) for module in leaves]
    try:
        with evaluating(encoder), torch.no_grad():
            encoder(torch.zeros(1, *shape))
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _turned(layer: Layer) -> nn.Module:
    """The layer that leads from the shape after to the shape before."""
    module, before, after = layer
    if isinstance(module, nn.Linear):
        return nn.Linear(module.out_features, module.in_features)
    if isinstance(module, nn.Flatten):
        return nn.Unflatten(1, before)
    if isinstance(module, FlattenChannelsLast):
        return _Raised(before)
    if isinstance(module, POOLS):
        return nn.Upsample(size=tuple(before[1:]))
    if isinstance(module, nn.Conv2d):
        return _turned_convolution(module, before, after)
    if before != after:
        raise ValueError(
            f"{module} leads from {tuple(before)} to {tuple(after)}, and a decoder can't turn it round: "
            "use an encoder of dense layers, convolutions and pooling, such as model-a, model-b or mlp"
        )
    return _fresh(module)


class _Raised(nn.Module):
    """Vectors as the images (c, h, w) that ``FlattenChannelsLast`` made them of."""

    def __init__(self, shape: torch.Size) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        c, h, w = self.shape
        return x.view(-1, h, w, c).movedim(-1, 1)


def _turned_convolution(module: nn.Conv2d, before: torch.Size, after: torch.Size) -> nn.Module:
    sizes: Any = module.kernel_size
    same = nn.Conv2d(module.out_channels, module.in_channels, sizes, padding="same")
    return same if before[1:] == after[1:] else nn.Sequential(nn.Upsample(size=tuple(before[1:])), same)


def _fresh(module: nn.Module) -> nn.Module:
    """An activation, or a norm of the same width that has seen nothing yet."""
    module = copy.deepcopy(module)
    reset = getattr(module, "reset_parameters", None)
    if reset is not None:
        reset()
    return module
