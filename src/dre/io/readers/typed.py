"""Texts of a table to typed columns: numbers as people write them, yes and no, dates; all else stays text."""

from __future__ import annotations

import numpy as np
import polars as pl

from dre.io.readers.source import Array, to_strings
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, MISSING, NUMBER, TEXT, Malformed, TableColumn

ANSWERS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))  # in lower case
GROUPS = {  # thousands by the mark of decimals: groups of three digits, and what stands between them
    ".": (r"^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$", ","),
    ",": (r"^[-+]?\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+(?:,\d+)?$", r"[. \u00a0\u202f'’]"),
}
INTEGER = r"^[-+]?\d+$"
CODE = r"^0\d+$"  # digits with a leading zero: a postal code or a telephone number
DATE_LIKE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d|$)"
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y")
TIME_FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M",
)  # fmt: skip
MOSTLY = 0.5  # of the values: a column of so many numbers is one of numbers, and the others are mistakes


def decimal_mark(texts: pl.DataFrame) -> str:
    """Return the mark of decimals that the numbers of a table have. In doubt it is a point."""
    with_comma = texts.select(pl.all().str.contains(r"^[-+]?\d+,\d+$").any()).row(0)
    with_point = texts.select(pl.all().str.contains(r"^[-+]?\d*\.\d+(?:[eE][-+]?\d+)?$").any()).row(0)
    groups = texts.select(pl.all().str.contains(r"^[-+]?\d{1,3}(?:\.\d{3})+$").any()).row(0)
    return "," if any(with_comma) and all(g or not p for p, g in zip(with_point, groups, strict=True)) else "."


def typed_columns(names: list[str], texts: pl.DataFrame, decimal: str = ".") -> tuple[list[TableColumn], list[Malformed]]:
    """Give every column of texts a type.

    Parameters
    ----------
    names : list of str
        Of the columns.
    texts : DataFrame of strings
        Its own names of the columns are not read.
    decimal : {".", ","}, default="."
        Mark of decimals; the other mark, or a space, may stand between groups of three digits.

    Returns
    -------
    columns : list of TableColumn
    malformed : list of Malformed
        The first value of each column of numbers that is none.

    Examples
    --------
    >>> texts = pl.DataFrame([["1,5", "2"], ["yes", "no"], ["01187", "10115"]])
    >>> columns, _ = typed_columns(["size", "old", "zip"], texts, ",")
    >>> [(column.kind, column.values.tolist()) for column in columns]
    [('number', [1.5, 2.0]), ('boolean', [1.0, 0.0]), ('text', ['01187', '10115'])]
    """
    texts = texts.select(pl.all().str.strip_chars())
    present = texts.select(_unless_missing(pl.col(each)) for each in texts.columns)
    numbers = present.select(_to_number(pl.col(each), decimal) for each in texts.columns)
    counts, parsed = present.null_count().row(0), numbers.null_count().row(0)
    integers = present.select(pl.all().str.contains(INTEGER).all()).row(0)
    codes = present.select(pl.all().str.contains(CODE).any()).row(0)
    values = numbers.fill_null(float("nan")).to_numpy()
    columns, malformed, n = [], [], len(texts)
    for i, name in enumerate(names):
        missing, wrong = counts[i], parsed[i] - counts[i]
        if missing == n:
            columns.append(TableColumn(name, EMPTY, np.full(n, "")))
        elif wrong == 0 and not (codes[i] and integers[i]):
            columns.append(TableColumn(name, NUMBER, values[:, i], integers=bool(integers[i])))
        else:
            text, value, number = (frame.to_series(i) for frame in (texts, present, numbers))
            column = _other_column(name, text, value, is_code=wrong == 0)
            columns.append(column)
            if column.kind == TEXT and not column.codes and n - missing - wrong >= MOSTLY * (n - missing):
                row = int((number.is_null() & value.is_not_null()).arg_max() or 0)
                malformed.append(Malformed(name, row, text[row]))
    return columns, malformed


def _unless_missing(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.to_lowercase().is_in(MISSING)).then(None).otherwise(text).name.keep()


def _to_number(text: pl.Expr, decimal: str) -> pl.Expr:
    """Numbers; null for what is none. Groups of three digits are taken together."""
    pattern, mark = GROUPS[decimal]
    grouped = text.str.contains(pattern)
    plain = pl.when(grouped).then(text.str.replace_all(mark, "")).otherwise(text)
    plain = plain.str.replace(",", ".", literal=True) if decimal == "," else plain
    number = plain.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number).otherwise(None).name.keep()


def _other_column(name: str, texts: pl.Series, present: pl.Series, *, is_code: bool) -> TableColumn:
    if is_code:
        return TableColumn(name, TEXT, _strings(present), codes=True)
    lower = present.str.to_lowercase()
    answers = next((pair for pair in ANSWERS if set(lower.drop_nulls().unique().to_list()) == set(pair)), None)
    if answers is not None:
        flags = [np.nan if each is None else float(each == answers[0]) for each in lower.to_list()]
        return TableColumn(name, BOOLEAN, np.array(flags), texts=_strings(texts))
    dates = _dates(present)
    return TableColumn(name, TEXT, _strings(texts)) if dates is None else TableColumn(name, DATE, dates)


def text_column(name: str, texts: pl.Series) -> TableColumn:
    """A column of texts: yes and no, dates, codes with leading zeros, or plain text."""
    texts = texts.str.strip_chars()
    present = texts.to_frame("text").select(_unless_missing(pl.col("text"))).to_series()
    digits = present.drop_nulls().str.contains(INTEGER).all() and present.drop_nulls().str.contains(CODE).any()
    return _other_column(name, texts, present, is_code=bool(digits))


def _dates(present: pl.Series) -> Array | None:
    """Dates as in ISO 8601, if all values are dates of one format."""
    if not present.drop_nulls().str.contains(DATE_LIKE).all():
        return None
    for formats, kind, written in ((DATE_FORMATS, pl.Date, "%Y-%m-%d"), (TIME_FORMATS, pl.Datetime, "%Y-%m-%dT%H:%M:%S")):
        for each in formats:
            found = present.str.strptime(kind, each, strict=False)
            if found.null_count() == present.null_count():
                return _strings(found.dt.strftime(written))
    return None


def _strings(texts: pl.Series) -> Array:
    return to_strings(texts.to_list())
