"""What labels say of the dots: classes, or values on a scale; those without a label are known as such."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dre.metrics.inputs import label_array
from dre.plot.palette import MOST

Array = np.ndarray[Any, Any]
DISTINCT = 30  # numbers that are no integers are a scale where more are different


@dataclass(frozen=True, eq=False)
class Classes:
    names: list[str]  # sorted as the labels are
    codes: Array  # (n,) int16 or wider, -1 where there is no label

    def rows(self) -> list[Array]:
        """The rows of each class."""
        order = self.codes.argsort(kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return [order[start:stop] for start, stop in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class Scale:
    values: Array  # (n,) float64, NaN where there is none
    least: float  # where colours end: values may go on, those of a few rows
    most: float

    @property
    def beyond(self) -> str:
        """Where they do, as a colour bar wants to be told."""
        low, high = np.nanmin(self.values) < self.least, np.nanmax(self.values) > self.most
        return {(True, True): "both", (True, False): "min", (False, True): "max"}.get((bool(low), bool(high)), "neither")


def colouring(labels: Any, n: int) -> Classes | Scale | None:
    """Numbers with many different values are a scale, all else is classes.

    >>> colouring(["b", None, "a"], 3).codes.tolist()
    [1, -1, 0]
    >>> type(colouring(np.linspace(0, 1, 100), 100)).__name__
    'Scale'
    """
    if labels is None:
        return None
    values = label_array(labels, n)
    missing = _missing(values)
    if missing.all():
        return None
    known = values[~missing]
    if known.dtype.kind == "O":
        known = np.asarray(known.tolist())
    known = known.astype(str) if known.dtype.kind not in "biufSU" else known
    distinct = np.unique(known)
    if known.dtype.kind in "iuf" and len(distinct) > (DISTINCT if known.dtype.kind == "f" else MOST):
        return _scale(known, missing)
    codes = np.full(n, -1, dtype=np.int16 if len(distinct) < 2**15 else np.int64)
    codes[~missing] = np.searchsorted(distinct, known)
    return Classes([f"{name:g}" if distinct.dtype.kind == "f" else str(name) for name in distinct], codes)


def _missing(values: Array) -> Array:
    """None, NaN and what equals them, and texts of nothing."""
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) or value == "" for value in values], dtype=bool)
    if values.dtype.kind == "U":
        return np.asarray(values == "")
    return np.asarray(~np.isfinite(values)) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN and NaT don't equal themselves
    except TypeError:  # nor will pandas' NA say
        return True


def _scale(known: Array, missing: Array) -> Scale:
    """A few values far out would leave one colour to all others: the last hundredth at either end shares its colour."""
    values = np.full(len(missing), np.nan)
    values[~missing] = known
    ends = np.quantile(known, [0, 0.01, 0.99, 1]).tolist()
    least, most = ends[1:3] if ends[2] > ends[1] else (ends[0], ends[3])
    return Scale(values, least, most)
