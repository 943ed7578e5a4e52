"""Columns of a page: one value per row, either a class with a color or a number on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.plot.colors import MAX_COLORS, Categorical, Continuous, color_by, hex_colors

Array = np.ndarray[Any, Any]
VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]
MISSING = "–"


@dataclass(frozen=True, eq=False)
class Column:
    """One value per row: codes of classes, or numbers between the ends of a scale."""

    name: str
    values: Array  # unsigned codes; or numbers as int32, float32 or float64
    names: list[str] | None = None  # names of the classes; None for a scale
    colors: list[str] | None = None  # of the first classes, the others are gray; or of a scale, from low to high
    low: float = 0.0
    high: float = 1.0
    dark: list[str] | None = None  # colors on a dark background, if they differ
    low_on_top: bool = False  # whether points with low values are drawn last

    @property
    def is_scale(self) -> bool:
        return self.names is None

    @property
    def groups_rows(self) -> bool:
        """Whether there is more than one class, and fewer classes than rows."""
        return self.names is not None and 1 < len(self.names) < len(self.values)

    def about(self) -> dict[str, Any]:
        """The description that the page reads, without the values."""
        ends = {"low": self.low, "high": self.high, "lowOnTop": self.low_on_top} if self.is_scale else {}
        colors = {"colors": self.colors, "dark": self.dark or self.colors}
        return {"name": self.name, "type": self.values.dtype.name, "scale": self.is_scale, **colors, **ends}


def make_column(name: str, values: Any) -> Column:
    """Make a column: a scale for numbers with many different values, classes for everything else, as in `dre.plot`.

    >>> make_column("type", np.array(["B", "T", "B"])).names
    ['B', 'T']
    >>> make_column("age", np.linspace(20, 60, 100)).is_scale
    True
    """
    found = color_by(values, len(values))
    if isinstance(found, Continuous):
        return make_scale(name, np.asarray(values), low=found.low, high=found.high)
    return _classes(name, found or Categorical([], np.full(len(values), -1)))


def make_scale(name: str, values: Array, *, low: float, high: float, colors: list[str] = VIRIDIS) -> Column:
    """Make a column of numbers on a color scale from ``low`` to ``high``."""
    return Column(name, _numbers(values), None, list(colors), low, high if high > low else low + 1.0)


def _numbers(values: Array) -> Array:
    """Convert to a type that JavaScript has, without loss: int32 or float64 for integers, else float32 or float64."""
    if values.dtype.kind in "iu":
        fits = values.min() >= -(2**31) and values.max() < 2**31
        return values.astype(np.int32 if fits else np.float64)
    return values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64)


def _classes(name: str, found: Categorical) -> Column:
    """Return classes in their order, or the largest first if there are more than colors; rows without a class come last."""
    names, codes = list(found.names), found.codes.astype(np.int64)
    if len(names) > MAX_COLORS:
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        order = np.argsort(-counts, kind="stable")
        rank = np.append(np.argsort(order), -1)  # −1, a missing class, stays −1
        names, codes = [names[i] for i in order], rank[codes]
    colors = hex_colors(min(len(names), MAX_COLORS))
    if (codes < 0).any():
        codes[codes < 0] = len(names)
        names.append(MISSING)
    return Column(name, codes.astype(_smallest_type(len(names))), names, colors)


def _smallest_type(count: int) -> Any:
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if count <= np.iinfo(kind).max + 1)
