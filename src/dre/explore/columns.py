"""What is known of every row, as a page shows it: a class with a colour, or a number on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.plot.palette import hexes
from dre.sources.texts import plain, texts

Array = np.ndarray[Any, Any]
COLOURED = 150  # classes that have a colour of their own; of more, the largest
FEW = 30  # different whole numbers that are classes; more are a scale
CENTRAL = 0.02  # of the values at either end lie beyond the scale
VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]
MISSING = "–"


@dataclass(frozen=True, eq=False)
class Column:
    """One value for every row: codes into names, or numbers between two ends of a scale."""

    name: str
    values: Array  # unsigned codes, or float32
    names: list[str] | None = None  # of classes
    colours: list[str] | None = None  # of the first classes, or from the low end of a scale to its high end
    low: float = 0.0
    high: float = 1.0
    dark: list[str] | None = None  # the colours on a dark ground, where they are others
    low_on_top: bool = False  # whether points with low values are drawn over the others

    @property
    def is_scale(self) -> bool:
        return self.names is None

    def about(self) -> dict[str, Any]:
        """What a page needs beside the values."""
        ends = {"low": self.low, "high": self.high, "lowOnTop": self.low_on_top} if self.is_scale else {}
        colours = {"colours": self.colours, "dark": self.dark or self.colours}
        return {"name": self.name, "type": self.values.dtype.name, "scale": self.is_scale, **colours, **ends}


def column(name: str, values: Any) -> Column:
    """Texts, truths and a few whole numbers are classes, other numbers a scale.

    >>> column("type", np.array(["B", "T", "B"])).names
    ['B', 'T']
    >>> column("age", np.linspace(20, 60, 100)).is_scale
    True
    """
    known = plain(values)
    if known.dtype.kind == "f" or (known.dtype.kind in "iu" and len(np.unique(known)) > FEW):
        return scale(name, known)
    return _classes(name, known)


def scale(
    name: str, values: Any, colours: list[str] = VIRIDIS, *, low: float | None = None, high: float | None = None
) -> Column:
    numbers = np.asarray(values, dtype=np.float32)
    there = numbers[np.isfinite(numbers)]
    ends = np.quantile(there, (CENTRAL, 1 - CENTRAL)) if len(there) else (0.0, 1.0)
    low, high = (float(end if given is None else given) for given, end in zip((low, high), ends, strict=True))
    return Column(name, numbers, None, list(colours), low, high if high > low else low + 1.0)


def _classes(name: str, known: Array) -> Column:
    """In their natural order; where there are more than have colours, the largest first."""
    unique, codes, counts = np.unique(known, return_inverse=True, return_counts=True)
    if len(unique) > COLOURED:
        order = np.argsort(-counts, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        unique, codes = unique[order], place[codes]
    names = [said if said else MISSING for said in texts(unique.tolist()).tolist()]
    return Column(name, codes.reshape(-1).astype(_smallest(len(names))), names, hexes(min(len(names), COLOURED)))


def _smallest(count: int) -> Any:
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if count <= np.iinfo(kind).max + 1)
