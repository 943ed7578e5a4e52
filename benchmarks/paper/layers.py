"""The layers of a network as it is built: what each is called, what it does, and the shape that it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from dre.baselines.mirror import UNCHANGED, layers_of
from dre.encoder.network import FlattenChannelsLast


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
    names = {module: name for name, module in network.named_modules()}
    found: list[Layer] = []
    for module, before, after in layers_of(network, shape):
        what = _what(module)
        if isinstance(module, UNCHANGED):
            continue
        if what in AFTER.values() and found:
            found[-1] = replace(found[-1], after=(*found[-1].after, what))
        elif what != FLAT or before != after:
            found.append(Layer(names[module].partition(".")[0], what, tuple(after)))
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
    if isinstance(module, (nn.Flatten, FlattenChannelsLast)):
        return FLAT
    return next((name for kind, name in AFTER.items() if isinstance(module, kind)), type(module).__name__)
