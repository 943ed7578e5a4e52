"""Which tables need a preparation, and which of their columns can't be mapped."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from dre.data.column_names import check_known, check_unique, listed
from dre.data.foreign_rows import NUMBERS, foreign_rows
from dre.data.rows import is_rows
from dre.data.table_columns import (
    BOOLEAN,
    CATEGORY,
    EMPTY,
    MAPPED,
    NUMBER,
    TEXT,
    VECTORS,
    are_answers,
    are_numerals,
    column_kind,
    to_numbers,
    to_texts,
)
from dre.data.table_columns import missing as missing_values
from dre.data.table_preparation import TablePreparation, check_missing
from dre.data.validation import refuse_path, refuse_records, with_gaps
from dre.data.weights import LEAST, RowWeights
from dre.runtime.caller import level_of_caller

Array = np.ndarray[Any, Any]

ID_NAME = re.compile(r"id|ids|index|idx|key|uuid|guid|row|rowid|unnamed: ?0|.*[_\s.-](?:id|uuid|guid|key)")  # in lower case
CAMEL_ID = re.compile(r".*[a-z](?:Id|ID|Key|Uuid)")
MANY = 20  # different values of a text: more are not categories, unless the column is asked for
MOST = 1_000  # categories of a column, at most: each becomes a column
FEWEST = 20  # rows from which it tells something that all their values differ
LISTED = 5  # columns that a remedy lists where a shorter one is at hand
REPEATED = "a different text in each row"
NUMERALS = " that are numbers written as text"  # ends a reason
LONGEST = 20  # names of columns that a remedy lists


def fit_table(
    X: Any, columns: str | list[str] | None = None, missing: str = "error", weights: RowWeights | None = None
) -> TablePreparation | None:
    """Return the preparation that X needs, fitted to it; None for rows of numbers alone, or of booleans alone.

    Parameters
    ----------
    X : DataFrame, array or anything else
    columns : None, "numbers" or list of str, default=None
        Columns that are mapped. By default all, which must be numbers, booleans, or texts of few values.
    missing : {"error", "mean", "median"}, default="error"
        What fills gaps. A preparation that fills gaps is also made for numbers alone: rows to come may have gaps.
    weights : RowWeights, optional
        The preparation is that of each row as often as its weight says; rows that are left out count for nothing.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"size": [1.0, 2.0, 4.0], "kind": ["a", "b", "a"]})
    >>> fit_table(frame).names_out
    ['size', 'kind=a', 'kind=b']
    >>> fit_table(frame[["size"]]) is None
    True
    """
    check_missing(missing)
    check_unique(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None if missing == "error" else _fit_array(X, missing, weights)
    if 0 in frame.shape:
        raise ValueError(
            f"X is empty: a DataFrame of {frame.shape[0]} rows and {frame.shape[1]} columns. Pass {LEAST} rows or more."
        )
    ids = None if weights is None else weights.ids(len(frame))
    present = _present(frame, ids)
    kinds = {name: column_kind(present.get_column(name)) for name in _chosen(frame, columns)}
    if columns == NUMBERS:
        kinds = {name: kind for name, kind in kinds.items() if kind == NUMBER}
    if set(kinds.values()) in ({NUMBER}, {BOOLEAN}, {VECTORS}, set()) and (
        missing == "error" or not set(kinds.values()) - {VECTORS}
    ):
        return None
    are_named = all(isinstance(name, str) for name in kinds)
    if set(kinds.values()) == {NUMBER}:  # all of them are mapped, as they are without gaps
        if are_named:
            return TablePreparation.fit(X, kinds, missing=missing, ids=ids)
        if len(kinds) == len(frame.columns):
            return _fit_array(frame.to_numpy(), missing, weights)
    if not are_named:
        raise ValueError("X has columns whose names are no texts: X.columns = X.columns.astype(str) makes them texts")
    kinds, reasons = _resolved(present, kinds, is_chosen=columns is not None)
    if reasons:
        raise ValueError(_unusable(frame, kinds, reasons))
    if columns is None:
        _warn_of_numerals(present, kinds)
    return TablePreparation.fit(X, kinds, missing=missing, ids=ids)


def is_called_id(name: str) -> bool:
    """Whether a column has the name of an id, such as ``customer_id`` or ``Unnamed: 0``."""
    name = name.strip()
    return ID_NAME.fullmatch(name.lower()) is not None or CAMEL_ID.fullmatch(name) is not None


def _present(frame: nw.DataFrame[Any], ids: Array | None) -> nw.DataFrame[Any]:
    """Return each row with one of these ids once: a row that is repeated tells no more about the kind of a column."""
    if ids is None:
        return frame
    once = np.unique(ids)
    return frame if len(once) == len(frame) else frame[once]


def _chosen(frame: nw.DataFrame[Any], columns: str | list[str] | None) -> Sequence[str]:
    if not isinstance(columns, list):
        return frame.columns
    check_known(columns, frame.columns)
    return columns


def _resolved(frame: nw.DataFrame[Any], kinds: Mapping[str, str], *, is_chosen: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kinds of the columns that can be mapped, and the reasons against the others."""
    found, reasons = {}, {}
    for name, kind in kinds.items():
        column = frame.get_column(name)
        if kind in (TEXT, CATEGORY):
            found[name], reason = _kind_of_texts(to_texts(column), kind, is_chosen=is_chosen)
        else:
            is_id = kind == NUMBER and not is_chosen and _numbers_rows(name, column)
            found[name], reason = kind, "it numbers the rows" if is_id else "" if kind in MAPPED else kind
        if reason:
            reasons[name] = reason
    return {name: kind for name, kind in found.items() if name not in reasons}, reasons


def _kind_of_texts(texts: Any, kind: str, *, is_chosen: bool) -> tuple[str, str]:
    """Return the kind of a column of texts, and why it can't be mapped; an empty reason if it can."""
    present = texts[~missing_values(texts)]
    values, is_meant = set(present.tolist()), is_chosen or kind == CATEGORY
    if kind == TEXT and are_answers(present):
        return BOOLEAN, ""
    if len(values) > (MOST if is_meant else MANY):
        return TEXT, f"text with {len(values):,} different values{NUMERALS if are_numerals(present) else ''}"
    if not is_meant and 1 < len(values) == len(present):
        return TEXT, REPEATED + (NUMERALS if are_numerals(present) else "")
    return CATEGORY, "" if values else EMPTY


def _numbers_rows(name: str, column: nw.Series[Any]) -> bool:
    """Whether different whole numbers only tell the rows apart: they count from 0 or 1, or are called an id."""
    values = to_numbers(name, column)
    if len(values) < FEWEST or not (values == np.floor(values)).all():
        return False
    counts = values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    return counts or (is_called_id(name) and len(np.unique(values)) == len(values))


def _warn_of_numerals(frame: nw.DataFrame[Any], kinds: Mapping[str, str]) -> None:
    """Warn of categories that were read from texts which are numbers: a file is often read so by mistake."""
    for name, kind in kinds.items():
        column = frame.get_column(name)
        if kind != CATEGORY or column_kind(column) != TEXT:
            continue
        texts = to_texts(column)
        present = texts[~missing_values(texts)]
        if are_numerals(present):
            warnings.warn(
                f"the column {name!r} has numbers written as text, such as {present[0]!r}: each value becomes a category. "
                f"{_numeral_remedy(name, present)} If categories are meant, give the column a type of categories.",
                stacklevel=level_of_caller(),
            )


def _numeral_remedy(name: str, texts: Any) -> str:
    """How a column of texts is read as numbers."""
    if any("," in text for text in texts):
        return f"To read {name!r} as numbers, pass decimal=',' to pandas.read_csv, or decimal_comma=True to polars.read_csv."
    return f"To read {name!r} as numbers, use pandas.to_numeric(X[{name!r}]), or a cast to Float64 in polars."


def _unusable(frame: nw.DataFrame[Any], kinds: Mapping[str, str], reasons: Mapping[str, str]) -> str:
    """The message about columns that can't be mapped, with a remedy that can be pasted."""
    named = listed([f"{name!r} ({reason})" for name, reason in reasons.items()], quote=False)
    written = [name for name, reason in reasons.items() if reason.endswith(NUMERALS)]
    vectors = [name for name, reason in reasons.items() if reason == VECTORS]
    hints = [_numeral_remedy(written[0], [text for text in to_texts(frame.get_column(written[0])) if text])] if written else []
    hints += [f"numpy.stack(X[{vectors[0]!r}]) has its vectors as an array, which can be mapped alone."] if vectors else []
    return " ".join([f"X has columns that can't be mapped: {named}; {_without(kinds, reasons)}.", *hints])


def _without(kinds: Mapping[str, str], reasons: Mapping[str, str]) -> str:
    """How the columns that can be mapped are chosen, by the shorter list."""
    if not kinds:
        return "turn them into numbers or categories first"
    if len(kinds) <= max(LISTED, len(reasons)) and len(kinds) <= LONGEST:
        return f"pass columns=[{', '.join(map(repr, kinds))}] to map the others"
    if len(reasons) <= LONGEST:
        return f"pass X.drop(columns=[{', '.join(map(repr, reasons))}]), or X.drop([...]) in polars, to map the others"
    return f"pass the names of the {len(kinds):,} others as columns=[...]"


def _fit_array(X: Any, missing: str, weights: RowWeights | None = None) -> TablePreparation | None:
    """Return the fills of the gaps of an array."""
    refuse_path(X, "X")
    refuse_records(X, "X")
    X = foreign_rows(X)
    if is_rows(X) or scipy.sparse.issparse(X) or len(np.shape(X)) != 2:
        raise ValueError(f"missing={missing!r} fills gaps of tables and of arrays (n, d): leave it out for other data")
    rows = with_gaps(X, "X")
    if 0 in rows.shape:
        raise ValueError(f"X is empty: an array of the shape {rows.shape}. Pass {LEAST} rows or more.")
    ids = None if weights is None else weights.ids(len(rows))
    kinds = {f"x{i}": NUMBER for i in range(rows.shape[1])}
    return TablePreparation.fit(rows, kinds, missing=missing, named=False, ids=ids)
