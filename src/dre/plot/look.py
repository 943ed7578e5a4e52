"""How all pictures look: ink, paper, colours, and axes without clutter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dre.notation import unknown
from dre.plot.palette import class_colours

__all__ = [
    "ACCENT", "DARK", "FAINT", "INK", "LIGHT", "LINE", "PAPER", "STYLES", "TROUBLE", "Style", "bare", "class_colours",
    "lay_image", "one_axis", "panels", "plain", "pyplot", "scale_colours", "settle", "size_of", "style_of",
]  # fmt: skip
Array = np.ndarray[Any, Any]
INSTALL = "pictures need matplotlib: pip install 'deep-recursive-embedding[plot]'"


@dataclass(frozen=True)
class Style:
    """What differs between a picture on white and one on a dark ground."""

    ink: str
    paper: str
    line: str
    faint: str  # what stands back: dots without a label
    accent: str
    trouble: tuple[str, ...]  # from what is as it should be, which recedes, to what is not
    wrong: str  # how that end of it looks, in a word
    scale: tuple[float, float]  # the part of viridis that is seen on the paper


LIGHT = Style(
    ink="#22252b",
    paper="#ffffff",
    line="#d5d8de",
    faint="#a6acb8",
    accent="#2f6fb3",
    trouble=("#dfe2e8", "#f4d7a8", "#f08a4b", "#c1292e", "#6b0f1a"),
    wrong="dark",
    scale=(0.0, 0.93),
)
DARK = Style(
    ink="#e6e8ec",
    paper="#14161b",
    line="#3b404a",
    faint="#646b78",
    accent="#6cacec",
    trouble=("#343944", "#5f4a3d", "#c2542d", "#f58f4a", "#ffe6b8"),
    wrong="bright",
    scale=(0.24, 1.0),
)
STYLES = {"light": LIGHT, "dark": DARK}
INK, PAPER, LINE, FAINT, ACCENT, TROUBLE = LIGHT.ink, LIGHT.paper, LIGHT.line, LIGHT.faint, LIGHT.accent, LIGHT.trouble


def style_of(style: str | Style) -> Style:
    """By its name, "light" or "dark", or one's own."""
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        raise ValueError(unknown("style", str(style), list(STYLES)))
    return STYLES[style]


def pyplot() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as problem:
        raise ImportError(INSTALL) from problem
    return plt


def panels(
    count: int, width: float = 5.0, height: float = 5.2, *, in_a_line: int | None = None, style: Style = LIGHT
) -> tuple[Any, list[Any]]:
    """A figure with as many axes in a row, or in several."""
    columns = min(count, in_a_line or count)
    lines = -(-count // columns)
    figure = pyplot().figure(figsize=(width * columns, height * lines), facecolor=style.paper, layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_axis_off()
    return figure, axes[:count]


def one_axis(ax: Any, width: float = 5.0, height: float = 4.2, *, style: Style = LIGHT) -> Any:
    return panels(1, width, height, style=style)[1][0] if ax is None else ax


def bare(axis: Any, title: str = "", style: Style = LIGHT, *, margin: float = 0.04) -> None:
    """A map: its axes mean nothing, so they carry no numbers; a unit is as long in both."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_facecolor(style.paper)
    axis.spines[:].set_color(style.line)
    axis.margins(margin)
    axis.set_title(title, color=style.ink, fontsize=11)


def plain(axis: Any, title: str, x: str, y: str, style: Style = LIGHT) -> None:
    """A diagram: two axes with names, no frame."""
    axis.set_title(title, color=style.ink, fontsize=11)
    axis.set_xlabel(x, color=style.ink)
    axis.set_ylabel(y, color=style.ink)
    axis.set_facecolor(style.paper)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(style.line)
    axis.tick_params(which="both", labelcolor=style.ink, color=style.line)


def settle(axis: Any) -> None:
    """Lay the figure out now, so that it is known how many points a place in the map is from another."""
    figure = axis.figure.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    axis.apply_aspect()


def lay_image(
    axis: Any,
    image: Array,
    extent: tuple[float, float, float, float],
    *,
    origin: Literal["upper", "lower"] = "upper",
    zorder: float = 1,
) -> None:
    """An image over a part of a map, (left, right, bottom, top); imshow would change what part of the map is seen."""
    from matplotlib.image import AxesImage

    laid = AxesImage(axis, extent=extent, origin=origin, interpolation="antialiased", zorder=zorder)
    laid.set_data(image)
    laid.set_clip_path(axis.patch)
    axis.add_image(laid)


def scale_colours(style: Style = LIGHT) -> Any:
    """The colours of values: the part of viridis that stands out from the paper."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(*style.scale, 256)))


def size_of(n: int, inches: float = 5.2) -> float:
    """Of a dot, in points²: a map of n, so many inches wide, should be neither dust nor soup."""
    return float(np.clip(15_000 / max(1, n), 0.7, 24) * (inches / 5.2) ** 2)
