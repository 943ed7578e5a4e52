"""Columns of a page: one value per row, a class with a color, a number or a date on a scale, or text to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dre.explore.encode import smallest_unsigned
from dre.explore.ramps import value_ramp
from dre.metrics.inputs import has_label, label_array
from dre.plot.colors import MAX_COLORS, hex_colors, scale_of
from dre.plot.kinds import CLASS, DATE, NUMBER, TEXT, as_dates, kind_of, known_values

Array = np.ndarray[Any, Any]
MISSING = "–"
MAX_DECIMALS = 4  # numbers with so few decimals are stored as integers, which compress better
NO_INTEGER = -(2**31)  # marks a missing value among them
MAX_CHARACTERS = 20_000_000  # of all texts of a column
CUT_TO = (2000, 1000, 500, 200, 100, 50)  # characters of a text, if there are more


@dataclass(frozen=True, eq=False)
class Column:
    """One value per row: codes of classes or texts, or numbers or dates between the ends of a scale."""

    name: str
    kind: str
    values: Array  # unsigned codes; or numbers as int32, float32 or float64; dates in milliseconds since 1970
    names: list[str] | None = None  # of classes or texts; of numbers and dates there are none
    colors: list[str] | None = None  # of the first classes, the others are gray; or of a scale, from low to high
    dark: list[str] | None = None  # colors on a dark background, if they differ
    low: float = 0.0  # ends of the color scale
    high: float = 1.0
    decimals: int | None = None  # if the values are stored as integers: how often to divide them by 10
    integer: bool = False  # whether all numbers are integers; classes are then in their order
    has_missing: bool = False
    scales: tuple[str, ...] = ("linear", "quantile")  # that are offered
    scale: str = "linear"  # at first
    fixed: bool = False  # whether the ends have a meaning of their own, and stay
    low_on_top: bool = False  # whether points with low values are drawn last
    explain: str | None = None  # a sentence for the legend
    precision: str = "day"  # of dates; else "second"

    @property
    def groups_rows(self) -> bool:
        """Whether there is more than one class, and fewer classes than rows."""
        return self.kind == CLASS and self.names is not None and 1 < len(self.class_names) < len(self.values)

    @property
    def class_names(self) -> list[str]:
        """Without the name of missing values."""
        names = self.names or []
        return names[:-1] if self.has_missing else names

    def about(self) -> dict[str, Any]:
        """The description that the page reads, without the values."""
        shared = {"name": self.name, "kind": self.kind, "type": self.values.dtype.name}
        colors = {"colors": self.colors, "dark": self.dark or self.colors, "explain": self.explain}
        if self.kind == TEXT:
            return {**shared, "missing": self.has_missing}
        if self.kind == CLASS:
            return {**shared, **colors, "missing": self.has_missing, "ordered": self.integer}
        shared |= {**colors, "low": self.low, "high": self.high, "scales": list(self.scales), "scale": self.scale}
        if self.kind == DATE:
            return {**shared, "precision": self.precision}
        numbers = {"integer": self.integer, "decimals": self.decimals, "fixed": self.fixed, "lowOnTop": self.low_on_top}
        return {**shared, **numbers}


def make_column(name: str, values: Any, *, colors_points: bool = False) -> Column:
    """Make a column of classes, numbers, dates or text, as `dre.plot.kinds.kind_of` tells; text that colors points is classes.

    >>> make_column("type", np.array(["B", "T", "B"])).names
    ['B', 'T']
    >>> make_column("age", np.linspace(20, 60, 100)).kind
    'number'
    """
    array = label_array(values, len(values), name)
    kind = kind_of(array, name)
    if kind == NUMBER:
        return make_scale(name, as_numbers(array))
    if kind == DATE:
        return _dates(name, as_dates(array))
    return _texts(name, array) if kind == TEXT and not colors_points else _classes(name, array)


def as_numbers(values: Array) -> Array:
    """Numbers as they are, or as float64 where some are missing, which become NaN."""
    if values.dtype.kind in "iu" or (values.dtype.kind == "f" and not np.isinf(values).any()):
        return values
    known = has_label(values)
    numbers = np.full(len(values), np.nan)
    numbers[known] = known_values(values)
    return numbers


def make_scale(name: str, values: Array) -> Column:
    """Make a column of numbers, with the color scale that figures have."""
    known = values[np.isfinite(values)].astype(np.float64)
    ends, ramp = scale_of(known), value_ramp()
    stored, decimals = _stored(values)
    return Column(
        name,
        NUMBER,
        stored,
        colors=ramp.colors,
        dark=ramp.dark,
        low=ends.low,
        high=ends.high,
        decimals=decimals,
        integer=bool((known == np.floor(known)).all()),
        scales=("linear", "log", "quantile") if bool((known > 0).all()) else ("linear", "quantile"),
        scale=ends.scale,
    )


def _stored(values: Array) -> tuple[Array, int | None]:
    """Numbers in a type that JavaScript has, without loss; those with few decimals as integers, and their decimals."""
    if values.dtype.kind == "f" and values.dtype.itemsize <= 4:
        return values.astype(np.float32), None
    known = np.isfinite(values)
    exact = values.astype(np.float64)
    for decimals in range(MAX_DECIMALS + 1):
        steps = np.rint(exact[known] * 10**decimals)
        if len(steps) and np.abs(steps).max() >= 2**31:
            break
        if np.array_equal(steps / 10**decimals, exact[known]):
            integers = np.full(len(values), NO_INTEGER, np.int32)
            integers[known] = steps
            return integers, decimals
    return exact, None


def _dates(name: str, dates: Array | None) -> Column:
    assert dates is not None  # kind_of has seen them
    known = ~np.isnat(dates)
    values = np.where(known, dates.astype(np.int64), np.nan)
    ends, ramp = scale_of(values[known], may_be_log=False), value_ramp()
    precision = "day" if bool((dates[known].astype("datetime64[D]") == dates[known]).all()) else "second"
    made = Column(name, DATE, values, colors=ramp.colors, dark=ramp.dark, low=ends.low, high=ends.high)
    return replace(made, scales=("linear",), precision=precision)


def _classes(name: str, values: Array) -> Column:
    """Return classes in their order, or the largest first if there are more than colors; rows without a class come last."""
    present, known = has_label(values), known_values(values)
    distinct, found = np.unique(known, return_inverse=True)
    is_number = distinct.dtype.kind in "iuf"
    names = [str(each).removesuffix(".0") if is_number else str(each) for each in distinct]
    if len(names) > MAX_COLORS:
        order = np.argsort(-np.bincount(found), kind="stable")
        names, found = [names[i] for i in order], np.argsort(order)[found]
    codes = np.full(len(values), len(names))
    codes[present] = found
    missing = not present.all()
    colors = hex_colors(min(len(names), MAX_COLORS))
    names += [MISSING] if missing else []
    stored = codes.astype(smallest_unsigned(len(names)))
    return Column(name, CLASS, stored, names, colors, integer=is_number, has_missing=missing)


def _texts(name: str, values: Array) -> Column:
    """Number the texts as they come, so that texts which occur once have the numbers 0, 1, 2, …"""
    present = has_label(values)
    numbers: dict[str, int] = {}
    codes = np.zeros(len(values), np.int64)
    codes[present] = [numbers.setdefault(str(each), len(numbers)) for each in values[present].tolist()]
    codes[~present] = len(numbers)
    missing = not present.all()
    names = [*numbers, *([MISSING] if missing else [])]
    return Column(name, TEXT, codes.astype(smallest_unsigned(len(names))), names, has_missing=missing)


def unused_name(name: str, columns: Sequence[Column]) -> str:
    """The name of a column that the page adds, if need be with a suffix."""
    return name if all(column.name != name for column in columns) else f"{name} of the map"


def decoded_texts(column: Column, ids: Array) -> Array:
    """The names of classes or texts of some rows; empty where missing."""
    names = np.array([*column.class_names, ""], dtype=object)
    return names[np.minimum(column.values[ids].astype(np.int64), len(names) - 1)]


def decoded_numbers(column: Column, ids: Array) -> Array:
    """The numbers of some rows, as float64; NaN where missing."""
    if column.kind == CLASS:
        return np.array([*map(float, column.class_names), np.nan])[column.values[ids]]
    values = column.values[ids].astype(np.float64)
    return values if column.decimals is None else np.where(values == NO_INTEGER, np.nan, values / 10.0**column.decimals)


def cut_texts(column: Column) -> tuple[Column, int | None]:
    """Shorten the texts of a column that would make the page too large; also return the length that they are cut to."""
    lengths = np.array([len(name) for name in column.names or []])
    if column.kind != TEXT or lengths.sum() <= MAX_CHARACTERS:
        return column, None
    most = next((each for each in CUT_TO if np.minimum(lengths, each).sum() <= MAX_CHARACTERS), CUT_TO[-1])
    return replace(column, names=[name if len(name) <= most else f"{name[:most]}…" for name in column.names or []]), most
