"""DataFrames of pandas and polars: the columns that a map is made of, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from dre.data.column_names import check_known, check_unique, listed
from dre.data.foreign_rows import NUMBERS, foreign_rows, is_table
from dre.data.rows import is_rows
from dre.data.table_columns import CATEGORY, DATE, DURATION, NUMBER, OTHER, RECORDS, TEXT, VECTORS, column_kind

REMEDIES = {  # by kind of column
    TEXT: "encode",
    DATE: "encode",
    CATEGORY: "encode",
    VECTORS: "pass numpy.stack(frame[name]) for",
    DURATION: "convert",
    RECORDS: "convert",
    OTHER: "convert",
}


def check_columns(columns: Any) -> str | list[str] | None:
    """Check the parameter ``columns``: None, ``"numbers"``, or names."""
    if columns is None or (isinstance(columns, str) and columns == NUMBERS):
        return columns
    names = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str | Mapping) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"columns={columns!r}: expected 'numbers', or a list of names of columns")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"columns names {listed(twice)} more than once: name each column once")
    return [str(name) for name in names]


def check_has_columns(X: Any, columns: str | list[str] | None) -> None:
    """Raise a ValueError if columns are chosen of rows without names, such as an array."""
    if columns is None or is_rows(X) or is_table(X) or is_dataframe(X):
        return
    raise ValueError(
        f"columns={columns!r} chooses columns of a table, but X is a {type(X).__name__}, whose columns have no names: leave "
        "columns out, or pass pandas.DataFrame(X, columns=[...])"
    )


def is_dataframe(X: Any) -> bool:
    """Whether X is a DataFrame in memory."""
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def select_features(
    X: Any,
    columns: str | list[str] | None,
    fitted: Sequence[str] | None = None,
    row_shape: tuple[int, ...] | None = None,
) -> Any:
    """Return a DataFrame with the columns to map; anything else is returned unchanged.

    Parameters
    ----------
    X : DataFrame or anything else
    columns : None, "numbers" or list of str
        None keeps all columns, which must hold numbers.
    fitted : sequence of str, default=None
        Names of the columns that a model was fitted to: ``columns`` then selects these, whatever else X has.
    row_shape : tuple of int, default=None
        Shape of the rows that a model was fitted to: images of a dataset are resized to it. Given for a query alone.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"size": [1.0, 2.0], "kind": ["a", "b"]})
    >>> select_features(frame, "numbers").columns
    ['size']
    """
    X = foreign_rows(X, columns if fitted is None else list(fitted), row_shape)
    check_unique(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X
    kinds = {name: column_kind(frame.get_column(name)) for name in frame.columns}
    if columns is None:
        known = set(frame.columns if fitted is None else fitted)
        wanted = [name for name in frame.columns if name in known]
    elif fitted is not None:
        wanted = list(fitted)
    else:
        wanted = [name for name, kind in kinds.items() if kind == NUMBER] if columns == NUMBERS else list(columns)
    check_known(wanted, frame.columns)
    if not wanted and fitted is None:
        raise ValueError("X has no column of numbers: leave out columns='numbers' to map categories and texts of few values")
    _check_kinds(
        {name: kinds[name] for name in wanted},
        offers_numbers=columns is None and row_shape is None and NUMBER in kinds.values(),
    )
    return X if columns is None else frame.select(wanted).to_native()


def fill_gaps(X: Any, fills: Mapping[str, float], names: Sequence[str] | None = None) -> Any:
    """Return a DataFrame with missing values of numbers replaced, by column; anything else is returned unchanged.

    An array of floats is filled, too, if its columns have these names.

    >>> import polars
    >>> fill_gaps(polars.DataFrame({"a": [1, None], "b": [float("nan"), 2.0]}), {"a": 5.0, "b": 7.0}).rows()
    [(1.0, 7.0), (5.0, 2.0)]
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X if names is None else _fill_array(X, fills, names)
    wanted = {name: fills[name] for name in frame.columns if name in fills and frame.schema[name].is_numeric()}
    filled = [nw.col(name).cast(nw.Float64).fill_nan(value).fill_null(value) for name, value in wanted.items()]
    return frame.with_columns(filled).to_native()


def _fill_array(X: Any, fills: Mapping[str, float], names: Sequence[str]) -> Any:
    is_plain = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray)  # the check of masked values names the first
    if not is_plain or X.ndim != 2 or X.dtype.kind != "f" or X.shape[1] != len(names):
        return X
    values = np.array([fills.get(name, np.nan) for name in names], dtype=X.dtype)
    return np.where(np.isnan(X), values, X)


def _check_kinds(kinds: dict[str, str], *, offers_numbers: bool) -> None:
    wrong = {name: kind for name, kind in kinds.items() if kind in REMEDIES}
    if not wrong:
        return
    named = listed([f"{name!r} ({kind})" for name, kind in wrong.items()], quote=False)
    first = REMEDIES[next(iter(wrong.values()))]
    numbers = "Pass columns='numbers' to map the numbers alone, or" if offers_numbers else "Leave them out, or"
    raise ValueError(f"X has columns that do not hold numbers: {named}. {numbers} {first} these columns first.")
