"""Style of all plots: light and dark themes, figures and axes without clutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np

from dre.notation import unknown
from dre.plot.colors import TRUST_ENDS, TRUST_STOPS, resample
from dre.plot.fonts import set_fonts

Array = np.ndarray[Any, Any]
INSTALL = "plots need matplotlib: pip install 'deep-recursive-embedding[plot]'"
RATIOS = (0.5, 3.0)  # of the width of a map to its height; longer ones leave a part of their frame empty
MIN_FIGURE = 1.0  # inches
LETTERS_PER_INCH = 11  # of a title


@dataclass(frozen=True)
class Style:
    """Colors of a theme.

    Parameters
    ----------
    text, background, frame : str
        Colors of text, background and frames.
    unlabeled : str
        Color of points without a label.
    accent : str
        Color of lines and points that stand out.
    distortion : tuple of str
        Color scale from undistorted, which recedes, to distorted.
    distorted : str
        Word for the distorted end of the scale.
    viridis : tuple of float
        Part of the colormap viridis that stands out from the background.
    """

    text: str
    background: str
    frame: str
    unlabeled: str
    accent: str
    distortion: tuple[str, ...]
    distorted: str
    viridis: tuple[float, float]


LIGHT = Style(
    text="#22252b",
    background="#ffffff",
    frame="#d5d8de",
    unlabeled="#a6acb8",
    accent="#2f6fb3",
    distortion=("#dfe2e8", "#f4d7a8", "#f08a4b", "#c1292e", "#6b0f1a"),
    distorted="dark",
    viridis=(0.0, 0.93),
)
DARK = Style(
    text="#e6e8ec",
    background="#14161b",
    frame="#3b404a",
    unlabeled="#646b78",
    accent="#6cacec",
    distortion=("#343944", "#5f4a3d", "#c2542d", "#f58f4a", "#ffe6b8"),
    distorted="bright",
    viridis=(0.24, 1.0),
)
STYLES = {"light": LIGHT, "dark": DARK}
TEXT, BACKGROUND, FRAME, UNLABELED, ACCENT = LIGHT.text, LIGHT.background, LIGHT.frame, LIGHT.unlabeled, LIGHT.accent


def trust_colors(style: Style, count: int = 51) -> list[str]:
    """Return the colors of trustworthiness and continuity from 0.5 to 1, in equal steps.

    >>> trust_colors(LIGHT)[-1] == LIGHT.distortion[0]  # 1 recedes
    True
    """
    return resample(style.distortion[::-1], TRUST_STOPS[::-1], np.linspace(*TRUST_ENDS, count))


def get_style(style: str | Style) -> Style:
    """Return the style called "light" or "dark"; a Style is returned as it is."""
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        raise ValueError(unknown("style", str(style), list(STYLES)))
    return STYLES[style]


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an ImportError that says how to install it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as problem:
        raise ImportError(INSTALL) from problem
    return plt


def panels(
    count: int, width: float = 5.0, height: float = 5.2, *, max_columns: int | None = None, style: Style = LIGHT
) -> tuple[Any, list[Any]]:
    """Create a figure with so many axes, each ``width`` by ``height`` inches, in one row or in several."""
    columns = min(count, max_columns or count)
    rows = -(-count // columns)
    figure = pyplot().figure(figsize=(width * columns, height * rows), facecolor=style.background, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_axis_off()
    return figure, axes[:count]


def frame_size(points: Sequence[Array], size: float, limits: tuple[float, float] = RATIOS) -> tuple[float, float]:
    """Return width and height of frames with the shape of maps, within limits; the longer side is ``size``.

    >>> frame_size([np.array([[0.0, 0.0], [4.0, 2.0]])], 6.0)
    (6.0, 3.0)
    """
    extents = np.array([np.ptp(each, axis=0) for each in points], dtype=float)
    relative = extents / np.maximum(extents.max(1, keepdims=True), 1e-300)  # each map fills its own frame
    wide, high = np.maximum(relative.max(0), 1e-9)
    ratio = float(np.clip(wide / high, *limits))
    return (size, size / ratio) if ratio >= 1 else (size * ratio, size)


def shape_panels(axes: Sequence[Any], width: float, height: float) -> None:
    """Resize a figure such that each of its panels has this size in inches; what is beside them keeps its size."""
    figure = axes[0].figure
    rows, columns = axes[0].get_gridspec().get_geometry()
    for _ in range(2):  # what is beside the panels can change with them
        apply_layout(*axes)
        own = axes[0].get_window_extent().size / figure.dpi
        grown = figure.get_size_inches() + np.array([columns, rows]) * (np.array([width, height]) - own)
        figure.set_size_inches(np.maximum(grown, MIN_FIGURE))
        for axis in axes:
            axis.autoscale_view()  # forgets the limits of the shape before
    apply_layout(*axes)


def get_axes(ax: Any, width: float = 5.0, height: float = 4.2, *, style: Style = LIGHT) -> Any:
    """Return ``ax``, or the axes of a new figure if it is None."""
    return panels(1, width, height, style=style)[1][0] if ax is None else ax


def map_axes(axis: Any, title: str = "", style: Style = LIGHT, *, margin: float = 0.04) -> None:
    """Set up axes for an embedding: no ticks, since coordinates have no meaning, and an equal aspect."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_facecolor(style.background)
    axis.spines[:].set_color(style.frame)
    axis.margins(margin)
    axis.set_title(title, color=style.text, fontsize=11)
    set_fonts([axis.title])


def wrap_title(title: str, inches: float) -> str:
    """Break a title into lines of at most this width.

    >>> wrap_title("a title that is too long", 1)
    'a title\\nthat is too\\nlong'
    """
    width = max(10, int(LETTERS_PER_INCH * inches))
    return "\n".join(fill(line, width) for line in title.split("\n"))


def add_note(axis: Any, note: str, style: Style = LIGHT) -> None:
    """Add a line below a map, after those that are there."""
    lines = [line for line in (axis.get_xlabel(), note) if line]
    axis.set_xlabel("\n".join(lines), color=style.text, fontsize=9.5)
    set_fonts([axis.xaxis.label])


def plot_axes(axis: Any, title: str, x: str, y: str, style: Style = LIGHT) -> None:
    """Set up axes for a diagram: two labeled axes, no frame."""
    axis.set_title(title, color=style.text, fontsize=11)
    axis.set_xlabel(x, color=style.text)
    axis.set_ylabel(y, color=style.text)
    axis.set_facecolor(style.background)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(style.frame)
    axis.tick_params(which="both", labelcolor=style.text, color=style.frame)
    set_fonts([axis.title, axis.xaxis.label, axis.yaxis.label])


def apply_layout(*axes: Any) -> None:
    """Lay out the figure of these axes now, so that data coordinates can be converted to pixels."""
    figure = axes[0].figure.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    for axis in axes:
        axis.apply_aspect()


def add_image(
    axis: Any,
    image: Array,
    extent: tuple[float, float, float, float],
    *,
    origin: Literal["upper", "lower"] = "upper",
    zorder: float = 1,
) -> None:
    """Draw an image at (left, right, bottom, top) of the data; unlike imshow, it keeps the limits of the axes."""
    from matplotlib.image import AxesImage

    artist = AxesImage(axis, extent=extent, origin=origin, interpolation="antialiased", zorder=zorder)
    artist.set_data(image)
    artist.set_clip_path(axis.patch)
    axis.add_image(artist)


def dot_size(n: int, inches: float = 5.2) -> float:
    """Return the area in points² of each of n dots, such that an embedding of this width is neither empty nor filled."""
    return float(np.clip(15_000 / max(1, n), 0.7, 24) * (inches / 5.2) ** 2)
