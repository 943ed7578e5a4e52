"""What is known of every row, as a page shows it: a class with a colour, or a number on a scale."""

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
    """One value for every row: codes into names, or numbers between two ends of a scale."""

    name: str
    values: Array  # unsigned codes; or numbers, int32, float32 or float64
    names: list[str] | None = None  # of classes
    colours: list[str] | None = None  # of the first classes, others are grey; or from the low end of a scale to its high end
    low: float = 0.0
    high: float = 1.0
    dark: list[str] | None = None  # the colours on a dark ground, where they are others
    low_on_top: bool = False  # whether points with low values are drawn over the others

    @property
    def is_scale(self) -> bool:
        return self.names is None

    @property
    def tells_apart(self) -> bool:
        """Classes of several rows, and more than one."""
        return self.names is not None and 1 < len(self.names) < len(self.values)

    def about(self) -> dict[str, Any]:
        """What a page needs beside the values."""
        ends = {"low": self.low, "high": self.high, "lowOnTop": self.low_on_top} if self.is_scale else {}
        colours = {"colours": self.colours, "dark": self.dark or self.colours}
        return {"name": self.name, "type": self.values.dtype.name, "scale": self.is_scale, **colours, **ends}


def column(name: str, values: Any) -> Column:
    """Numbers with many different values are a scale, all else is classes, as in pictures.

    >>> column("type", np.array(["B", "T", "B"])).names
    ['B', 'T']
    >>> column("age", np.linspace(20, 60, 100)).is_scale
    True
    """
    found = color_by(values, len(values))
    if isinstance(found, Continuous):
        return scale(name, np.asarray(values), low=found.low, high=found.high)
    return _classes(name, found or Categorical([], np.full(len(values), -1)))


def scale(name: str, values: Array, *, low: float, high: float, colours: list[str] = VIRIDIS) -> Column:
    return Column(name, _numbers(values), None, list(colours), low, high if high > low else low + 1.0)


def _numbers(values: Array) -> Array:
    """As a page can hold them: whole numbers stay what they are, others in the precision that they have, if it is so little."""
    if values.dtype.kind in "iu":
        fits = values.min() >= -(2**31) and values.max() < 2**31
        return values.astype(np.int32 if fits else np.float64)
    return values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64)


def _classes(name: str, found: Categorical) -> Column:
    """In their order, or the largest first where there are more than have colours; rows without one come last, in grey."""
    names, codes = list(found.names), found.codes.astype(np.int64)
    if len(names) > MAX_COLORS:
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        order = np.argsort(-counts, kind="stable")
        place = np.append(np.argsort(order), -1)  # of a code in this order; −1 stays
        names, codes = [names[i] for i in order], place[codes]
    colours = hex_colors(min(len(names), MAX_COLORS))
    if (codes < 0).any():
        codes[codes < 0] = len(names)
        names.append(MISSING)
    return Column(name, codes.astype(_smallest(len(names))), names, colours)


def _smallest(count: int) -> Any:
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if count <= np.iinfo(kind).max + 1)
