"""An embedding in a panel: windows onto all of it or a class, and dots that are drawn or shaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.plot.style import FRAME, UNLABELED

Array = np.ndarray[Any, Any]
BINS = 160  # per side, for densities
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # smoothing in bins; the first at which the classes meet is used
SHARE = 0.1  # of the embedding's side that a zoom shows
DRAWN_UP_TO = 25_000  # rows; more dots would cover each other and are shaded instead
PIXELS = (160, 480)  # per side of a shaded embedding; fewer for fewer rows, or most would be empty
FAINTEST = 0.35  # opacity of a single row


@dataclass(frozen=True)
class Viewport:
    """A square window onto an embedding: its center and its side."""

    x: float
    y: float
    side: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top, as matplotlib's images take them."""
        half = self.side / 2
        return self.x - half, self.x + half, self.y - half, self.y + half

    def holds(self, points: Array) -> Array:
        """Return which points are inside, (n,)."""
        left, right, bottom, top = self.extent
        x, y = points.T
        inside: Array = (x >= left) & (x < right) & (y >= bottom) & (y < top)
        return inside

    def bins(self, points: Array, count: int) -> Array:
        """Return row and column of each point in a grid of count × count, from the bottom left, clipped to it, (n, 2)."""
        left, _, bottom, _ = self.extent
        found = ((points - (left, bottom)) * (count / self.side))[:, ::-1]
        return np.clip(found.astype(np.int64), 0, count - 1)


def full_view(points: Array) -> Viewport:
    """Return the window of an embedding without a few outliers, which would make the rest small.

    >>> full_view(np.array([[0.0, 0.0], [4.0, 2.0]]))
    Viewport(x=2.0, y=1.0, side=4.4)
    """
    low, high = np.quantile(points, (0.001, 0.999), axis=0)
    reach = 0.15 * (high - low).max()
    low, high = np.maximum(points.min(0), low - reach), np.minimum(points.max(0), high + reach)
    middle, side = (low + high) / 2, 1.1 * float((high - low).max())
    return Viewport(float(middle[0]), float(middle[1]), round(side, 6) or 1.0)


def inside(points: Array, is_class: Array) -> Viewport:
    """Return a window around the densest point of a class."""
    view = full_view(points)
    return _around(_density(points[is_class], view, WIDTHS[1]), view)


def border(points: Array, is_class: Array) -> Viewport:
    """Return a window around the point where the class and the others are equally dense, and as dense as possible."""
    view = full_view(points)
    for width in WIDTHS:
        meeting = np.minimum(_density(points[is_class], view, width), _density(points[~is_class], view, width))
        if meeting.max() > 1e-6 * len(points) / BINS**2:
            break
    return _around(meeting, view)


VIEWS = {"inside": inside, "border": border}


def _density(points: Array, view: Viewport, width: float) -> Array:
    from scipy.ndimage import gaussian_filter

    row, column = view.bins(points[view.holds(points)], BINS).T
    counts = np.bincount(row * BINS + column, minlength=BINS * BINS).reshape(BINS, BINS)
    smooth: Array = gaussian_filter(counts.astype(np.float64), width, mode="constant", truncate=3.0)
    return smooth


def _around(density: Array, view: Viewport) -> Viewport:
    row, column = np.unravel_index(int(density.argmax()), density.shape)
    left, _, bottom, _ = view.extent
    step = view.side / BINS
    return Viewport(float(left + (column + 0.5) * step), float(bottom + (row + 0.5) * step), SHARE * view.side)


def draw_dots(axis: Any, points: Array, colors: Array | None, window: Viewport) -> None:
    """Draw the points of an embedding (n, 2) inside a window, in their colors (n, 3) or in one."""
    shown = window.holds(points)
    points = points[shown]
    tints = np.broadcast_to(_rgb(UNLABELED), (len(points), 3)) if colors is None else colors[shown]
    if len(points) <= DRAWN_UP_TO:
        order = np.random.default_rng(0).permutation(len(points))  # so that no class covers the others
        size = float(np.clip(9000 / max(1, len(points)), 0.6, 8))
        axis.scatter(*points[order].T, c=tints[order], s=size, linewidths=0, alpha=0.85, rasterized=True)
    else:
        axis.imshow(shaded(points, tints, window), extent=window.extent, origin="lower", interpolation="antialiased")
    frame(axis)
    left, right, bottom, top = window.extent
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)


def shaded(points: Array, tints: Array, window: Viewport) -> Array:
    """Return an RGBA image: the mean color of the rows in a pixel, with an opacity that is logarithmic in their number."""
    side = int(np.clip(np.sqrt(len(points)), *PIXELS))
    row, column = window.bins(points, side).T
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
    """Style the axis as a square panel without ticks."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="box")
    axis.spines[:].set_color(FRAME)
    axis.spines[:].set_linewidth(0.8)


def colors_of_rows(codes: Array, palette: list[Any]) -> Array:
    """Return RGB colors (n, 3) from a code per row and a color per code."""
    table: Array = np.array([_rgb(color) for color in palette], dtype=np.float32)
    tints: Array = table[codes]
    return tints


def _rgb(color: Any) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(color)
    return red, green, blue
