"""Tables: named columns of numbers, texts, dates, or yes and no, before it is decided which of them are features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from dre.io.readers.source import Array, SourceError, to_strings

NUMBER, BOOLEAN, TEXT, DATE, EMPTY = "number", "boolean", "text", "date", "empty"  # kinds of columns
LARGEST_EXACT = 2**53  # float64 rounds integers beyond, such as long ids

MISSING = (  # texts, in lower case
    "", "na", "n/a", "nan", "none", "null", "nil", "<na>", "inf", "-inf", "?", "-", "--", "---", ".",
    "#n/a", "#value!", "#div/0!", "#ref!",
)  # fmt: skip


def blank_missing(values: Array) -> Array:
    """Return texts without the words that stand for a missing value; arrays of other kinds stay as they are.

    >>> blank_missing(np.array(["T cell", "NA", "?", "B cell"])).tolist()
    ['T cell', '', '', 'B cell']
    """
    if values.dtype.kind not in "OU":
        return values
    gaps = np.fromiter((isinstance(each, str) and each.strip().lower() in MISSING for each in values), bool, len(values))
    return np.where(gaps, "", values) if gaps.any() else values


@dataclass(frozen=True)
class Malformed:
    """A value that is no number in a column of numbers: the name of the column, the row and the text."""

    column: str
    row: int
    text: str


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column of a table.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "text", "date", "empty"}
    values : array of shape (n,)
        float64 for numbers and booleans, where NaN is missing; else str, where "" is missing. Dates are written as in ISO 8601.
    integers : bool, default=False
        Whether all numbers were written without a fraction.
    texts : array of shape (n,), default=None
        What stands in the file, if it is not the values: of booleans, of integers that float64 would round, and of texts some
        of which stand for a missing value.
    codes : bool, default=False
        Whether a text consists of digits that are no number, such as a postal code with a leading zero.
    """

    name: str
    kind: str
    values: Array
    integers: bool = False
    codes: bool = False
    texts: Array | None = None

    @property
    def missing(self) -> Array:
        """Whether each value is missing, (n,)."""
        return np.isnan(self.values) if self.values.dtype.kind == "f" else self.values == ""

    def as_metadata(self) -> Array:
        """The values as a person reads them: integers without a fraction, yes or no as texts, and empty texts for gaps."""
        if self.texts is not None:
            return np.where(self.missing, "", self.texts)
        if self.kind == BOOLEAN:
            return np.where(self.missing, "", np.where(self.values == 1, "yes", "no"))
        if self.kind == NUMBER and self.integers and not self.missing.any():
            return self.values.astype(np.int64)
        return self.values

    def as_names(self) -> Array:
        """The values as names of rows, where every text counts: a country may have the code NA."""
        return to_strings((self.as_metadata() if self.texts is None else self.texts).tolist())


def resembles_number(value: str) -> bool:
    """Whether a value is a number, if need be with a decimal comma."""
    try:
        return math.isfinite(float(value.replace(",", ".", 1)))
    except ValueError:
        return False


def is_rounded(integers: Array) -> bool:
    """Whether float64 may have rounded one of these integers."""
    return bool((np.abs(integers) >= LARGEST_EXACT).any())


class CellPlace(Protocol):
    """Tells where a cell stands in its file, for messages."""

    def __call__(self, row: int, column: str) -> str: ...


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file, in their order.

    Parameters
    ----------
    path : Path
    columns : list of TableColumn
        With different names.
    place : callable
        Maps the number of a row and the name of a column to words such as ``"line 3, column 2 ('age')"``.
    names : array of shape (n,), default=None
        Names of the rows, from a column without a name.
    has_header : bool, default=True
        Whether the columns are named in the file.
    notes : list of str, default=empty list
        What was left out of the file.
    malformed : mapping of str to Malformed, default=empty
        The first word of each column that holds numbers otherwise. Such a column is text.
    decimal : {".", ","}, default=None
        The mark of decimals by which texts were read as numbers; None if the numbers are stored as such.
    """

    path: Path
    columns: list[TableColumn]
    place: CellPlace
    names: Array | None = None
    has_header: bool = True
    notes: list[str] = field(default_factory=list)
    malformed: Mapping[str, Malformed] = field(default_factory=dict)
    decimal: str | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name in seen:
                raise SourceError(f"{self.path} has several columns {column.name!r}: rename all but one")
            seen.add(column.name)

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    @cached_property
    def _by_name(self) -> dict[str, TableColumn]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> TableColumn:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name
