"""Texts of a table to typed columns: numbers as people write them, yes and no, dates; all else stays text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from dre.data.table_columns import ANSWERS
from dre.io.readers.source import Array, to_strings
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, MISSING, NUMBER, TEXT, Malformed, TableColumn, is_rounded

GROUPS = {  # thousands by the mark of decimals: groups of three digits, and what stands between them
    ".": (r"^[-+]?\d{1,3}(?:[,'’]\d{3})+(?:\.\d+)?$", r"[,'’]"),
    ",": (r"^[-+]?\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+(?:,\d+)?$", r"[. \u00a0\u202f'’]"),
}
DECIMAL_COMMA = r"^[-+]?(?:\d+|\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+),\d+$"
UNIT = r"^(?:[€$£¥]|CHF|EUR|USD|GBP)\s*|\s*(?:[€$£¥%]|[A-Za-zµ°]{1,4}[²³]?)$"  # currencies, percents, kg, m²
INTEGER = r"^[-+]?\d+$"
CODE = r"^0\d+$"  # digits with a leading zero: a postal code or a telephone number
DATE_LIKE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d|$)"
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y")
TIME_FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%d %H:%M:%S%.f%z", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)  # fmt: skip
JOINED = 2**20  # values of columns that are examined together
FEWEST_MARKERS = 3  # times that a word stands among numbers if it means a missing value
MOSTLY = 0.5  # of the values: a column of so many numbers is one of numbers, and the others are mistakes


def decimal_mark(texts: pl.DataFrame) -> str:
    """Return the mark of decimals that the numbers of a table have. In doubt it is a point."""
    with_comma = texts.select(pl.all().str.contains(DECIMAL_COMMA).any()).row(0)
    with_point = texts.select(pl.all().str.contains(r"^[-+]?\d*\.\d+(?:[eE][-+]?\d+)?$").any()).row(0)
    groups = texts.select(pl.all().str.contains(r"^[-+]?\d{1,3}(?:\.\d{3})+$").any()).row(0)
    return "," if any(with_comma) and all(g or not p for p, g in zip(with_point, groups, strict=True)) else "."


def typed_columns(
    names: list[str], texts: pl.DataFrame, decimal: str = "."
) -> tuple[list[TableColumn], list[Malformed], list[str]]:
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
    markers : list of str
        A line for each word that was taken for a missing value.

    Examples
    --------
    >>> texts = pl.DataFrame([["1,5", "2"], ["yes", "no"], ["01187", "10115"]])
    >>> columns, _, _ = typed_columns(["size", "old", "zip"], texts, ",")
    >>> [(column.kind, column.values.tolist()) for column in columns]
    [('number', [1.5, 2.0]), ('boolean', [1.0, 0.0]), ('text', ['01187', '10115'])]
    """
    columns, malformed, markers, n = [], [], [], len(texts)
    for name, series, found in zip(names, texts.iter_columns(), _examined(texts, decimal), strict=True):
        missing, wrong = int(found.missing.sum()), int(np.isnan(found.numbers).sum() - found.missing.sum())
        if missing == n:
            columns.append(TableColumn(name, EMPTY, np.full(n, "")))
        elif wrong == 0 and not (found.has_codes and found.is_integer):
            exact = _strings(_present(series)) if found.is_integer and is_rounded(found.numbers) else None
            whole = found.is_integer or bool((found.numbers[~found.missing] % 1 == 0).all())  # Excel writes ids as 17.0
            columns.append(TableColumn(name, NUMBER, found.numbers, integers=whole, texts=exact))
        else:
            text, value = series.str.strip_chars(), _present(series)
            marker = _missing_marker(value, found) if n - missing - wrong >= MOSTLY * (n - missing) else None
            if marker is not None:
                columns.append(TableColumn(name, NUMBER, found.numbers))
                markers.append(f"{marker!r} in {name!r} is a missing value ({wrong:,} times)")
                continue
            column = _other_column(name, text, value, decimal, is_code=wrong == 0)
            columns.append(column)
            if column.kind == TEXT and not column.codes and n - missing - wrong >= MOSTLY * (n - missing):
                row = int((np.isnan(found.numbers) & ~found.missing).argmax())
                malformed.append(Malformed(name, row, text[row]))
    return columns, malformed, markers


@dataclass(frozen=True, eq=False)
class _Examined:
    """What the texts of a column are as numbers."""

    numbers: Array  # (n,) float64, NaN for what is no number
    missing: Array  # (n,) bool
    is_integer: bool  # whether all values are written as integers
    has_codes: bool  # whether one has a leading zero


def _examined(texts: pl.DataFrame, decimal: str) -> Iterator[_Examined]:
    """Examine all columns. Many short ones are joined: an expression per column would take longer than its work."""
    n = max(1, len(texts))
    series = list(texts.iter_columns())
    step = max(1, JOINED // n)
    for start in range(0, len(series), step):
        block = series[start : start + step]
        joined = pl.concat([each.alias("text") for each in block], rechunk=True).to_frame()
        joined = joined.select(_unless_missing(pl.col("text").str.strip_chars()))
        found = joined.select(
            _to_number(pl.col("text"), decimal).fill_null(float("nan")).alias("number"),
            pl.col("text").is_null().alias("missing"),
            pl.col("text").str.contains(INTEGER).fill_null(True).alias("integer"),
            pl.col("text").str.contains(CODE).fill_null(False).alias("code"),
        )
        parts = [found[name].to_numpy().reshape(len(block), len(texts)) for name in found.columns]
        for numbers, missing, integers, codes in zip(*parts, strict=True):
            yield _Examined(numbers.copy(), missing, bool(integers.all()), bool(codes.any()))


def _present(texts: pl.Series) -> pl.Series:
    """Stripped texts; null where a value is missing."""
    return texts.to_frame("text").select(_unless_missing(pl.col("text").str.strip_chars())).to_series()


def _unless_missing(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.to_lowercase().is_in(MISSING)).then(None).otherwise(text).name.keep()


def _to_number(text: pl.Expr, decimal: str) -> pl.Expr:
    """Numbers; null for what is none. Groups of three digits are taken together."""
    pattern, mark = GROUPS[decimal]
    text = text.str.replace(r"^\((.+)\)$", "-$1")  # negative in accounting
    grouped = text.str.contains(pattern)
    plain = pl.when(grouped).then(text.str.replace_all(mark, "")).otherwise(text)
    plain = plain.str.replace(",", ".", literal=True) if decimal == "," else plain
    number = plain.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number).otherwise(None).name.keep()


def _missing_marker(present: pl.Series, found: _Examined) -> str | None:
    """The only word among numbers, if it stands there several times, as ``k.A.`` does; a single word is a mistake."""
    words = present.filter(pl.Series(np.isnan(found.numbers) & ~found.missing))
    return words[0] if len(words) >= FEWEST_MARKERS and words.n_unique() == 1 else None


def _amounts(present: pl.Series, decimal: str) -> Array | None:
    """Numbers of values that all have a currency or a percent sign; None if some have none."""
    units = present.drop_nulls().str.extract_all(UNIT).list.join("").str.strip_chars()
    if not (units != "").all() or units.n_unique() > 1:
        return None
    bare = present.str.replace_all(UNIT, "").to_frame("bare")
    numbers = bare.select(_to_number(pl.col("bare"), decimal)).to_series()
    if numbers.null_count() > present.null_count():
        return None
    return np.asarray(numbers.fill_null(float("nan")).to_numpy()).copy()


def _other_column(name: str, texts: pl.Series, present: pl.Series, decimal: str = ".", *, is_code: bool) -> TableColumn:
    if is_code:
        return TableColumn(name, TEXT, _strings(present), codes=True)
    amounts = _amounts(present, decimal)
    if amounts is not None:
        return TableColumn(name, NUMBER, amounts)
    lower = present.str.to_lowercase()
    answers = next((pair for pair in ANSWERS if set(lower.drop_nulls().unique().to_list()) == set(pair)), None)
    if answers is not None:
        flags = [np.nan if each is None else float(each == answers[0]) for each in lower.to_list()]
        return TableColumn(name, BOOLEAN, np.array(flags), texts=_strings(texts))
    dates = _dates(present)
    if dates is not None:
        return TableColumn(name, DATE, dates)
    has_words = present.null_count() > int((texts.fill_null("") == "").sum())  # that stand for a missing value
    return TableColumn(name, TEXT, _strings(present), texts=_strings(texts) if has_words else None)


def text_column(name: str, texts: pl.Series) -> TableColumn:
    """A column of texts: yes and no, dates, codes with leading zeros, or plain text."""
    texts, present = texts.str.strip_chars(), _present(texts)
    if present.null_count() == len(present):
        return TableColumn(name, EMPTY, _strings(present))
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
