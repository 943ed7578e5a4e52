"""The layers of a network as it is built: what each is called, what it does, and the shape that it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Layer:
    """A module with weights, or one that changes the shape, and the ones without that follow it."""

    part: str  # "features", "h1", "out": the submodule of the network that it belongs to
    what: str  # "dense", "conv 3 × 3", "max pool 2 × 2"
    shape: tuple[int, ...]  # of what it gives for one row
    after: tuple[str, ...] = ()  # "ReLU", "batch norm"


def layers(network: nn.Module, shape: tuple[int, ...]) -> list[Layer]:
    """Found by sending one row through, in the order in which it passes.

    >>> from dre.encoder.mlp import MLP
    >>> for layer in layers(MLP(16, depth=2).build((5,), 2), (5,)):
    ...     print(layer)
    Layer(part='h1', what='dense', shape=(16,), after=('layer norm', 'ReLU'))
    Layer(part='h2', what='dense', shape=(16,), after=('layer norm', 'ReLU'))
    Layer(part='out', what='dense', shape=(2,), after=())
    """
    found: list[Layer] = []

    def note(name: str, module: nn.Module, given: Any, result: Any) -> None:
        what, before, now = _what(module), tuple(given[0].shape[1:]), tuple(result.shape[1:])
        part = name.partition(".")[0]
        if what in AFTER.values() and found:
            found[-1] = replace(found[-1], after=(*found[-1].after, what))
        elif what != FLAT or before != now:
            found.append(Layer(part, what, now))

    leaves = [(name, module) for name, module in network.named_modules() if not list(module.children())]
    hooks = [
        module.register_forward_hook(lambda module, given, result, name=name: note(name, module, given, result))
        for name, module in leaves
    ]
    was_training = network.training
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, *shape))
    finally:
        network.train(was_training)
        for hook in hooks:
            hook.remove()
    return found


FLAT = "flatten"
AFTER: dict[type[nn.Module], str] = {
    nn.ReLU: "ReLU",
    nn.BatchNorm1d: "batch norm",
    nn.BatchNorm2d: "batch norm",
    nn.LayerNorm: "layer norm",
}


def _what(module: nn.Module) -> str:
    if isinstance(module, nn.Linear):
        return "dense"
    if isinstance(module, nn.Conv2d):
        return f"conv {module.kernel_size[0]} × {module.kernel_size[1]}"
    if isinstance(module, nn.MaxPool2d):
        return f"max pool {module.kernel_size} × {module.kernel_size}"
    if isinstance(module, nn.Flatten):
        return FLAT
    return AFTER.get(type(module), type(module).__name__)
