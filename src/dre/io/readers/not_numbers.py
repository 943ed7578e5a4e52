"""Columns that should hold the features and do not: those that are not there, words among numbers, and decimal commas."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dre.io.readers.options import ReadOptions
from dre.io.readers.source import SourceError, summarize_names
from dre.io.readers.table import TEXT, Malformed, Table, TableColumn, resembles_number

LISTED = 5  # columns that an error names
COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+|\d+),\d+")
WITH_COMMAS = "numbers with decimal commas: pass decimal=','"


def check_features(table: Table, wanted: Mapping[str, tuple[str, tuple[str, ...]]], options: ReadOptions) -> None:
    """Raise a `SourceError` if a table lacks features, or holds others than these.

    Parameters
    ----------
    table : Table
    wanted : mapping of str to (str, tuple of str)
        What each feature should hold, in words, and the kinds of columns that do; no kinds admit all.
    options : ReadOptions
    """
    lacking = [repr(name) for name in wanted if name not in table]
    if lacking:
        columns = f"the column {lacking[0]}" if len(lacking) == 1 else f"{len(lacking):,} columns"
        listed = f": {', '.join(lacking[:LISTED])}" if len(lacking) > 1 else ""
        more = f" and {len(lacking) - LISTED:,} more" if len(lacking) > LISTED else ""
        known = summarize_names([each.name for each in table.columns])
        raise SourceError(f"{table.path} lacks {columns} of {options.owner}{listed}{more}; its columns are {known}")
    for name, (what, kinds) in wanted.items():
        column = table[name]
        if kinds and column.kind not in kinds:
            if name in table.malformed:
                raise malformed_error(table, table.malformed[name], options)
            found = WITH_COMMAS if has_decimal_commas(table, column) else f"one of kind {column.kind!r}"
            raise SourceError(f"{table.path}: the column {name!r} should hold {what}, but it is {found}")


def has_decimal_commas(table: Table, column: TableColumn) -> bool:
    """Whether a column of texts holds numbers with a decimal comma, in a table that was read with a point."""
    if table.decimal != "." or column.kind != TEXT:
        return False
    present = column.values[~column.missing].tolist()
    # grouped thousands without decimals may stand among them
    return any(map(COMMA.fullmatch, present)) and all(COMMA.fullmatch(f"{each},0") or COMMA.fullmatch(each) for each in present)


def malformed_error(table: Table, found: Malformed, options: ReadOptions) -> SourceError:
    """The error for a word in a column of numbers, with its place and the remedy."""
    where = f"{table.path}, {table.place(found.row, found.column)}"
    if ";" in found.text or "\t" in found.text:
        remedy = "separate the columns by the same character in all lines"
    elif table.decimal == "." and (COMMA.fullmatch(found.text) or resembles_number(found.text)):
        remedy = "write decimals with a point, or pass decimal=','"
    elif re.fullmatch(r"[-+\d.e]+j", found.text, re.IGNORECASE):
        remedy = "put the real and imaginary parts of complex numbers into separate columns"
    elif options.features or options.where_possible:  # the column is needed, or the command has no option for columns
        remedy = "correct it"
    else:
        remedy = "correct it, or leave the column out: drop=[…]"
    return SourceError(f"{where}: {found.text!r} is not a number; {remedy}")
