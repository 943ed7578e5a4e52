"""Columns of a table as numbers, flags and texts, however a library stores them; gaps are NaN, and None among texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

Array = np.ndarray[Any, Any]
Column = Any  # a Series of narwhals, or an array
NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"  # kinds of columns that can be mapped
MAPPED = (NUMBER, BOOLEAN, CATEGORY)
TEXT, DATE, DURATION, VECTORS, RECORDS = "text", "dates", "durations", "vectors", "records"
OTHER, EMPTY = "values of other kinds", "empty"
NUMERAL = re.compile(r"\s*[+-]?(\d{1,3}([.,' ]\d{3})+|\d+)?([.,]\d+)?([eE][+-]?\d+)?\s*")

ANSWERS = (
    ("true", "false"),
    ("yes", "no"),
    ("t", "f"),
    ("y", "n"),
    ("ja", "nein"),
    ("oui", "non"),
    ("sí", "no"),
    ("si", "no"),
)  # in lower case
FLAGS = {word: float(i == 0) for pair in ANSWERS for i, word in enumerate(pair)} | {"1": 1.0, "0": 0.0}


TYPES: tuple[tuple[str, Callable[[Any], bool]], ...] = (  # of columns; the others hold Python objects
    (NUMBER, lambda dtype: dtype.is_numeric()),
    (BOOLEAN, lambda dtype: isinstance(dtype, nw.Boolean)),
    (DURATION, lambda dtype: isinstance(dtype, nw.Duration)),
    (DATE, lambda dtype: dtype.is_temporal()),
    (CATEGORY, lambda dtype: isinstance(dtype, nw.Categorical | nw.Enum)),
    (TEXT, lambda dtype: isinstance(dtype, nw.String)),
    (RECORDS, lambda dtype: isinstance(dtype, nw.Struct)),
    (VECTORS, lambda dtype: dtype.is_nested()),
)


def column_kind(column: nw.Series[Any]) -> str:
    """Return the kind of a column of a DataFrame by its type; a column of Python objects by its values.

    Examples
    --------
    >>> import polars
    >>> frame = nw.from_native(polars.DataFrame({"size": [1.5, None], "sex": ["f", "m"], "old": [True, False]}))
    >>> [column_kind(frame[name]) for name in frame.columns]
    ['number', 'text', 'boolean']
    """
    found = next((kind for kind, holds in TYPES if holds(column.dtype)), None)
    return found or _kind_of_objects([value for value in column.to_list() if not _is_gap(value)])


def _kind_of_objects(values: list[Any]) -> str:
    """The kind of Python objects without gaps, which may be numbers, or arrays."""
    if not values:
        return EMPTY
    if any(isinstance(value, list | tuple | np.ndarray) for value in values[:1]):
        return VECTORS
    if isinstance(values[0], Mapping):
        return RECORDS
    if all(isinstance(value, bool | np.bool_) for value in values):
        return BOOLEAN
    try:
        np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return TEXT if any(isinstance(value, str) for value in values) else OTHER
    return NUMBER


def to_numbers(name: str, column: Column) -> Array:
    """Return a column as float64, NaN where a value is missing; raise a ValueError for what is no number."""
    if isinstance(column, nw.Series):
        if column.dtype.is_numeric():
            return np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)  # a copy
        column = column.to_list()
    elif isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.array([_number(name, row, value) for row, value in enumerate(column)], dtype=np.float64)


def _number(name: str, row: int, value: Any) -> float:
    if _is_gap(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"the column {name!r} should hold numbers, but row {row} has {value!r}") from None


def to_flags(name: str, column: Column) -> Array:
    """Return a column of booleans, 0 and 1, or words such as yes and no, as float64; NaN where a value is missing."""
    if isinstance(column, nw.Series):
        column = column.to_list()
    return np.array([_flag(name, row, value) for row, value in enumerate(column)], dtype=np.float64)


def _flag(name: str, row: int, value: Any) -> float:
    if _is_gap(value):
        return np.nan
    found = FLAGS.get(to_text(value).lower())
    if found is None:
        raise ValueError(f"the column {name!r} should hold booleans, 0 and 1, or yes and no, but row {row} has {value!r}")
    return found


def to_texts(column: Column) -> Array:
    """Return a column as texts, an object array; None where a value is missing or empty.

    >>> to_texts([1, 2.0, "a", None, ""]).tolist()
    ['1', '2', 'a', None, None]
    """
    if isinstance(column, nw.Series):
        column = column.to_list()
    elif isinstance(column, np.ndarray):
        column = column.tolist()
    out = np.empty(len(column), dtype=object)
    out[:] = [None if _is_gap(value) else to_text(value) for value in column]
    return out


def to_text(value: Any) -> str:
    """Return a value as a text, a whole number without a fraction."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _is_gap(value: Any) -> bool:
    """Whether a value is missing: None, NaN, the NA of pandas, or an empty text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType")


def missing(values: Array) -> Array:
    """Whether each value of a column is missing, (n,): None among texts, else NaN."""
    if values.dtype == object:
        return np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    return np.isnan(values)


def are_answers(texts: Array) -> bool:
    """Whether all texts are the two words of an answer, such as yes and no."""
    found = {text.lower() for text in texts if text is not None}
    return any(found == set(pair) for pair in ANSWERS)


def are_numerals(texts: Array) -> bool:
    """Whether all texts are numbers, with a point or a comma, such as ``2,5`` and ``1.024``.

    >>> are_numerals(np.array(["2,5", "1.024", "-3e2"], dtype=object)), are_numerals(np.array(["2024.01.02"], dtype=object))
    (True, False)
    """
    return len(texts) > 0 and all(NUMERAL.fullmatch(text) and any(map(str.isdigit, text)) for text in set(texts.tolist()))
