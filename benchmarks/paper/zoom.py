"""Windows onto a map: all of it, the heart of a class, and the place where it meets another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BINS = 160  # along each side of the map, where densities are compared
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of the smoothing, in bins: the first at which the classes meet is taken
SHARE = 0.1  # of the map's side that a zoom shows


@dataclass(frozen=True)
class Window:
    """A square: its middle and its side."""

    x: float
    y: float
    side: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top, as matplotlib's images want it."""
        half = self.side / 2
        return self.x - half, self.x + half, self.y - half, self.y + half

    def holds(self, places: Array) -> Array:
        """(n,) which of the places are inside."""
        left, right, bottom, top = self.extent
        x, y = places.T
        inside: Array = (x >= left) & (x < right) & (y >= bottom) & (y < top)
        return inside

    def bins(self, places: Array, count: int) -> Array:
        """(n, 2) the row and column of each place in a grid of count × count, from the bottom left; none lies outside."""
        left, _, bottom, _ = self.extent
        found = ((places - (left, bottom)) * (count / self.side))[:, ::-1]
        return np.clip(found.astype(np.int64), 0, count - 1)


def whole(places: Array) -> Window:
    """All of the map, but for a few rows that lie far out: they would make the rest small.

    >>> whole(np.array([[0.0, 0.0], [4.0, 2.0]]))
    Window(x=2.0, y=1.0, side=4.4)
    """
    low, high = np.quantile(places, (0.001, 0.999), axis=0)
    reach = 0.15 * (high - low).max()
    low, high = np.maximum(places.min(0), low - reach), np.minimum(places.max(0), high + reach)
    middle, side = (low + high) / 2, 1.1 * float((high - low).max())
    return Window(float(middle[0]), float(middle[1]), round(side, 6) or 1.0)


def inside(places: Array, is_class: Array) -> Window:
    """Around the densest place of a class."""
    view = whole(places)
    return _around(_density(places[is_class], view, WIDTHS[1]), view)


def border(places: Array, is_class: Array) -> Window:
    """Around the place where the class is as dense as the others, and both as dense as can be."""
    view = whole(places)
    for width in WIDTHS:
        meeting = np.minimum(_density(places[is_class], view, width), _density(places[~is_class], view, width))
        if meeting.max() > 1e-6 * len(places) / BINS**2:
            break
    return _around(meeting, view)


VIEWS = {"inside": inside, "border": border}


def _density(places: Array, view: Window, width: float) -> Array:
    from scipy.ndimage import gaussian_filter

    row, column = view.bins(places[view.holds(places)], BINS).T
    counts = np.bincount(row * BINS + column, minlength=BINS * BINS).reshape(BINS, BINS)
    smooth: Array = gaussian_filter(counts.astype(np.float64), width, mode="constant", truncate=3.0)
    return smooth


def _around(density: Array, view: Window) -> Window:
    row, column = np.unravel_index(int(density.argmax()), density.shape)
    left, _, bottom, _ = view.extent
    step = view.side / BINS
    return Window(float(left + (column + 0.5) * step), float(bottom + (row + 0.5) * step), SHARE * view.side)
