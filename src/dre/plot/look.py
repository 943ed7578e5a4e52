"""How all pictures look: ink, paper, colours, and axes without clutter."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INK, PAPER, LINE, FAINT, ACCENT = "#22252b", "#ffffff", "#d5d8de", "#a6acb8", "#2f6fb3"
# From what is as it should be, which recedes, to what is not.
TROUBLE = ("#dfe2e8", "#f4d7a8", "#f08a4b", "#c1292e", "#6b0f1a")
INSTALL = "pictures need matplotlib: pip install 'deep-recursive-embedding[plot]'"


def pyplot() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as problem:
        raise ImportError(INSTALL) from problem
    return plt


def panels(count: int, width: float = 5.0, height: float = 5.2) -> tuple[Any, list[Any]]:
    """A figure with as many axes in a row."""
    figure = pyplot().figure(figsize=(width * count, height), facecolor=PAPER, layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def one_axis(ax: Any, width: float = 5.0, height: float = 4.2) -> Any:
    return panels(1, width, height)[1][0] if ax is None else ax


def class_colours(count: int) -> list[Any]:
    """One colour per class: ten that are easy to tell apart, and beyond that as many as can be, around the wheel."""
    from matplotlib import colormaps

    if count <= 10:
        return [colormaps["tab10"](i) for i in range(count)]
    return [colormaps["hsv"](i / count) for i in range(count)] if count > 20 else [colormaps["tab20"](i) for i in range(count)]


def bare(axis: Any, title: str = "") -> None:
    """A map: its axes mean nothing, so they carry no numbers; a unit is as long in both."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")
    axis.spines[:].set_color(LINE)
    axis.margins(0.04)
    axis.set_title(title, color=INK, fontsize=11)


def plain(axis: Any, title: str, x: str, y: str) -> None:
    """A diagram: two axes with names, no frame."""
    axis.set_title(title, color=INK, fontsize=11)
    axis.set_xlabel(x, color=INK)
    axis.set_ylabel(y, color=INK)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(LINE)
    axis.tick_params(colors=INK, color=LINE)


def size_of(n: int) -> float:
    """Of a dot, in points²: a map of n should be neither dust nor soup."""
    return float(np.clip(9000 / max(1, n), 1.2, 24))
