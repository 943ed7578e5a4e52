"""The dots of a map, few or a million: each one drawn, or all of them counted and shaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.style import FAINT, LINE
from paper.zoom import Window

Array = np.ndarray[Any, Any]
DRAWN_UP_TO = 25_000  # rows; beyond that single dots cover each other
PIXELS = (160, 480)  # along each side, of a map that is shaded: the fewer for few rows, or most of them were empty
FAINTEST = 0.35  # what a single row shows of its colour


def draw_dots(axis: Any, places: Array, colours: Array | None, window: Window) -> None:
    """Rows of a map (n, 2) that lie in a window, each in its colour (n, 3), or all in one."""
    shown = window.holds(places)
    places = places[shown]
    tints = np.broadcast_to(_rgb(FAINT), (len(places), 3)) if colours is None else colours[shown]
    if len(places) <= DRAWN_UP_TO:
        order = np.random.default_rng(0).permutation(len(places))  # so that no class hides the others
        size = float(np.clip(9000 / max(1, len(places)), 0.6, 8))
        axis.scatter(*places[order].T, c=tints[order], s=size, linewidths=0, alpha=0.85, rasterized=True)
    else:
        axis.imshow(shaded(places, tints, window), extent=window.extent, origin="lower", interpolation="antialiased")
    frame(axis)
    left, right, bottom, top = window.extent
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)


def shaded(places: Array, tints: Array, window: Window) -> Array:
    """An image (side, side, 4): the mean colour of the rows in a pixel, the denser for the more of them, by logarithm."""
    side = int(np.clip(np.sqrt(len(places)), *PIXELS))
    row, column = window.bins(places, side).T
    pixel = row * side + column
    counts = np.bincount(pixel, minlength=side * side)
    image = np.zeros((side * side, 4), np.float32)
    filled = counts > 0
    for channel in range(3):
        sums = np.bincount(pixel, weights=tints[:, channel], minlength=side * side)
        image[filled, channel] = sums[filled] / counts[filled]
    dense = np.quantile(counts[filled], 0.95) if filled.any() else 1
    share = np.minimum(1, np.log1p(counts[filled]) / np.log1p(max(2, dense)))
    image[filled, 3] = FAINTEST + (1 - FAINTEST) * share
    return image.reshape(side, side, 4)


def frame(axis: Any) -> None:
    """A panel of a grid: square, without numbers."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="box")
    axis.spines[:].set_color(LINE)
    axis.spines[:].set_linewidth(0.8)


def colour_of_rows(codes: Array, palette: list[Any]) -> Array:
    """(n, 3) from a code per row and a colour per code."""
    table: Array = np.array([_rgb(colour) for colour in palette], dtype=np.float32)
    tints: Array = table[codes]
    return tints


def _rgb(colour: Any) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue
