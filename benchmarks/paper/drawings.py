"""Figure 1 of the paper, the two networks, drawn from the modules themselves: what the code builds is what is shown."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from dre.encoder import Encoder
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.plot.style import INK
from paper.canvas import AFTER, EDGE, QUIET, one_sheet, tint
from paper.layers import Layer, layers
from paper.schematic import draw_schematic

__all__ = ["draw_networks", "draw_schematic"]

PITCH = {1: 1.0, 3: 1.16}  # from one layer to the next at least, for vectors and for images
THICK, SLICE, GAP = 0.3, 0.09, 0.26
HIGH, KEY = 3.4, 0.4  # one network, and what names its thin layers


def draw_networks() -> Any:
    """Model A and Model B as they are built for MNIST, one above the other; a matplotlib figure."""
    rows: list[tuple[str, Encoder, tuple[int, ...]]] = [
        ("Model A: vectors", ModelA(), (784,)),
        ("Model B: images", ModelB(), (1, 28, 28)),
    ]
    uniform_like = [(title, [Layer("x", "input", shape), *layers(plan.build(shape, 2), shape)]) for title, plan, shape in rows]
    places = [_places(found) for _, found in uniform_like]
    figure, axis = one_sheet((max(xs[-1] for xs in places) + 0.6, HIGH * len(rows) + KEY), bottom=-KEY)
    for i, ((title, found), xs) in enumerate(zip(uniform_like, places, strict=True)):
        _network(axis, title, found, xs, middle=HIGH * (len(rows) - i) - 1.75)
    _key(axis, sorted({name for _, found in uniform_like for layer in found for name in layer.after}))
    return figure


def _places(found: list[Layer]) -> list[float]:
    """The middle of each layer, from left to right."""
    places = [0.3 + _left(found[0])]
    for before, layer in pairwise(found):
        apart = _right(before) + GAP + _left(layer)
        places.append(places[-1] + max(apart, (PITCH[len(before.shape)] + PITCH[len(layer.shape)]) / 2))
    return places


def _network(axis: Any, title: str, found: list[Layer], places: list[float], middle: float) -> None:
    axis.text(0.25, middle + 1.42, title, fontsize=12, fontweight="bold", color=INK, va="center")
    for layer, x in zip(found, places, strict=True):
        _block(axis, layer, x, middle)
    for (before, start), (layer, end) in pairwise(zip(found, places, strict=True)):
        _arrow(axis, (start + _right(before) + 0.04, middle), (end - _left(layer) - 0.04, middle))
    for part, span in _spans(found).items():
        _brace(axis, part, (places[span[0]], places[span[1]]), middle)


def _left(layer: Layer) -> float:
    """How far a layer reaches to the left of its middle."""
    return _size(layer.shape) / 2 if len(layer.shape) == 3 else THICK / 2


def _right(layer: Layer) -> float:
    behind = 0.06 * (_sheets(layer) - 1) if len(layer.shape) == 3 else 0.0
    return _left(layer) + behind + len(layer.after) * (SLICE + 0.03)


def _sheets(layer: Layer) -> int:
    return min(4, max(1, layer.shape[0] // 8))


def _block(axis: Any, layer: Layer, x: float, middle: float) -> None:
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
    axis.text(x, low, " × ".join(map(str, layer.shape)), ha="center", va="center", fontsize=9, fontweight="bold", color=INK)
    axis.text(x, low - 0.2, layer.what, ha="center", va="center", fontsize=7.5, color=QUIET)


def _size(shape: tuple[int, ...]) -> float:
    """How high a layer is drawn: images by their side, vectors by the order of magnitude of their length."""
    return 0.18 + 0.022 * shape[1] if len(shape) == 3 else 0.28 + 0.2 * math.log2(max(1, shape[0]) / 2) * 0.83


def _spans(found: list[Layer]) -> dict[str, tuple[int, int]]:
    """The first and the last layer of every part but the input."""
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
    axis.text((left + right) / 2, y + 0.1, name, ha="center", va="bottom", fontsize=9, color=INK)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    look = {"arrowstyle": "-|>", "color": EDGE, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    axis.annotate("", xy=end, xytext=start, arrowprops=look)


def _key(axis: Any, names: list[str]) -> None:
    from matplotlib.patches import Rectangle

    x = 0.25
    for name in names:
        axis.add_patch(Rectangle((x, -0.22), SLICE, 0.26, facecolor=AFTER[name], linewidth=0))
        axis.text(x + 0.18, -0.1, name, va="center", fontsize=8.5, color=INK)
        x += 0.45 + 0.085 * len(name)
    axis.text(x + 0.15, -0.1, "Recursions read h1, h2 and h3.", va="center", fontsize=8.5, color=QUIET)
