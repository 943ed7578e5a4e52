"""Figure 1 of the paper, the two networks, drawn from the modules that the code builds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from torch import nn

from dre.baselines.autoencoder import UNCHANGED, layers_of
from dre.encoder import Encoder
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.encoder.network import FlattenChannelsLast
from dre.plot.style import TEXT
from paper.canvas import AFTER, EDGE, QUIET, one_sheet, tint

FLAT = "flatten"
FOLLOWERS: dict[type[nn.Module], str] = {
    nn.ReLU: "ReLU",
    nn.BatchNorm1d: "batch norm",
    nn.BatchNorm2d: "batch norm",
    nn.LayerNorm: "layer norm",
}
PITCH = {1: 1.0, 3: 1.16}  # smallest distance of layers, for vectors and images
THICK, SLICE, GAP = 0.3, 0.09, 0.26
HIGH, KEY = 3.4, 0.4  # height of a network and of the key


@dataclass(frozen=True)
class DrawnLayer:
    """A module with weights or another output shape, and the activations and norms after it."""

    part: str  # "features", "h1", "out": its submodule of the network
    what: str  # "dense", "conv 3 × 3", "max pool 2 × 2"
    shape: tuple[int, ...]  # output of one row
    after: tuple[str, ...] = ()  # "ReLU", "batch norm"


def layers(network: nn.Module, shape: tuple[int, ...]) -> list[DrawnLayer]:
    """Return the layers in the order of the forward pass.

    >>> from dre.encoder.mlp import MLP
    >>> for layer in layers(MLP(16, depth=2).build((5,), 2), (5,)):
    ...     print(layer)
    DrawnLayer(part='h1', what='dense', shape=(16,), after=('layer norm', 'ReLU'))
    DrawnLayer(part='h2', what='dense', shape=(16,), after=('layer norm', 'ReLU'))
    DrawnLayer(part='out', what='dense', shape=(2,), after=())
    """
    names = {module: name for name, module in network.named_modules()}
    found: list[DrawnLayer] = []
    for module, before, after in layers_of(network, shape):
        what = _what(module)
        if isinstance(module, UNCHANGED):
            continue
        if what in FOLLOWERS.values() and found:
            found[-1] = replace(found[-1], after=(*found[-1].after, what))
        elif what != FLAT or before != after:
            found.append(DrawnLayer(names[module].partition(".")[0], what, tuple(after)))
    return found


def _what(module: nn.Module) -> str:
    if isinstance(module, nn.Linear):
        return "dense"
    if isinstance(module, nn.Conv2d):
        return f"conv {module.kernel_size[0]} × {module.kernel_size[1]}"
    if isinstance(module, nn.MaxPool2d):
        return f"max pool {module.kernel_size} × {module.kernel_size}"
    if isinstance(module, (nn.Flatten, FlattenChannelsLast)):
        return FLAT
    return next((name for kind, name in FOLLOWERS.items() if isinstance(module, kind)), type(module).__name__)


def draw_networks() -> Any:
    """Draw Model A and Model B as built for MNIST, one above the other; return a matplotlib figure."""
    rows: list[tuple[str, Encoder, tuple[int, ...]]] = [
        ("Model A: vectors", ModelA(), (784,)),
        ("Model B: images", ModelB(), (1, 28, 28)),
    ]
    drawn = [
        (title, [DrawnLayer("x", "input", shape), *layers(encoder.build(shape, 2), shape)]) for title, encoder, shape in rows
    ]
    centers = [_centers(found) for _, found in drawn]
    figure, axis = one_sheet((max(xs[-1] for xs in centers) + 0.6, HIGH * len(rows) + KEY), bottom=-KEY)
    for i, ((title, found), xs) in enumerate(zip(drawn, centers, strict=True)):
        _network(axis, title, found, xs, middle=HIGH * (len(rows) - i) - 1.75)
    _key(axis, sorted({name for _, found in drawn for layer in found for name in layer.after}))
    return figure


def _centers(found: list[DrawnLayer]) -> list[float]:
    """Return the centers of the layers, from left to right."""
    centers = [0.3 + _left(found[0])]
    for before, layer in pairwise(found):
        apart = _right(before) + GAP + _left(layer)
        centers.append(centers[-1] + max(apart, (PITCH[len(before.shape)] + PITCH[len(layer.shape)]) / 2))
    return centers


def _network(axis: Any, title: str, found: list[DrawnLayer], centers: list[float], middle: float) -> None:
    axis.text(0.25, middle + 1.42, title, fontsize=12, fontweight="bold", color=TEXT, va="center")
    for layer, x in zip(found, centers, strict=True):
        _block(axis, layer, x, middle)
    for (before, start), (layer, end) in pairwise(zip(found, centers, strict=True)):
        _arrow(axis, (start + _right(before) + 0.04, middle), (end - _left(layer) - 0.04, middle))
    for part, span in _spans(found).items():
        _brace(axis, part, (centers[span[0]], centers[span[1]]), middle)


def _left(layer: DrawnLayer) -> float:
    """Return the extent of a layer to the left of its center."""
    return _size(layer.shape) / 2 if len(layer.shape) == 3 else THICK / 2


def _right(layer: DrawnLayer) -> float:
    behind = 0.06 * (_sheets(layer) - 1) if len(layer.shape) == 3 else 0.0
    return _left(layer) + behind + len(layer.after) * (SLICE + 0.03)


def _sheets(layer: DrawnLayer) -> int:
    return min(4, max(1, layer.shape[0] // 8))


def _block(axis: Any, layer: DrawnLayer, x: float, middle: float) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    size, fill = _size(layer.shape), tint(layer.part)
    if len(layer.shape) == 3:
        for sheet in reversed(range(_sheets(layer))):
            at = x - size / 2 + 0.06 * sheet, middle - size / 2 + 0.06 * sheet
            axis.add_patch(Rectangle(at, size, size, facecolor=fill, edgecolor=EDGE, linewidth=0.9))
    else:
        shape = FancyBboxPatch(
            (x - THICK / 2, middle - size / 2), THICK, size, boxstyle="round,pad=0,rounding_size=0.06", facecolor=fill,
            edgecolor=EDGE, linewidth=0.9,
        )  # fmt: skip
        axis.add_patch(shape)
    for i, name in enumerate(reversed(layer.after)):
        left = x + _right(layer) - i * (SLICE + 0.03) - SLICE
        axis.add_patch(Rectangle((left, middle - size / 2), SLICE, size, facecolor=AFTER[name], linewidth=0))
    low = middle - 1.12
    axis.text(x, low, " × ".join(map(str, layer.shape)), ha="center", va="center", fontsize=9, fontweight="bold", color=TEXT)
    axis.text(x, low - 0.2, layer.what, ha="center", va="center", fontsize=7.5, color=QUIET)


def _size(shape: tuple[int, ...]) -> float:
    """Return the height of a layer: images by their side, vectors by the logarithm of their length."""
    return 0.18 + 0.022 * shape[1] if len(shape) == 3 else 0.28 + 0.2 * math.log2(max(1, shape[0]) / 2) * 0.83


def _spans(found: list[DrawnLayer]) -> dict[str, tuple[int, int]]:
    """Return the first and last layer of every part but the input."""
    spans: dict[str, tuple[int, int]] = {}
    for i, layer in enumerate(found):
        if layer.part != "x":
            spans[layer.part] = spans.get(layer.part, (i, i))[0], i
    return spans


def _brace(axis: Any, part: str, span: tuple[float, float], middle: float) -> None:
    left, right = span
    y, reach = middle + 1.16, 0.36
    axis.plot(
        [left - reach, left - reach, right + reach, right + reach], [y - 0.06, y, y, y - 0.06], color=QUIET, linewidth=0.8
    )
    name = {"features": "features", "out": "map"}.get(part, part)
    axis.text((left + right) / 2, y + 0.1, name, ha="center", va="bottom", fontsize=9, color=TEXT)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": EDGE, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    axis.annotate("", xy=end, xytext=start, arrowprops=style)


def _key(axis: Any, names: list[str]) -> None:
    from matplotlib.patches import Rectangle

    x = 0.25
    for name in names:
        axis.add_patch(Rectangle((x, -0.22), SLICE, 0.26, facecolor=AFTER[name], linewidth=0))
        axis.text(x + 0.18, -0.1, name, va="center", fontsize=8.5, color=TEXT)
        x += 0.45 + 0.085 * len(name)
    axis.text(x + 0.15, -0.1, "Recursions read h1, h2 and h3.", va="center", fontsize=8.5, color=QUIET)
