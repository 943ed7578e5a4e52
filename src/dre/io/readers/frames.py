"""Tables whose columns have types in the file: .xlsx, .jsonl and .arrow, read by polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.source import INSTALL, SourceError, SourceFormat, as_source_error, to_strings
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, Table, TableColumn


def table_of(path: Path, frame: Any) -> Table:
    """Make a table of a DataFrame of polars. Texts are examined for dates and codes; numbers in texts stay texts."""
    if not len(frame):
        raise SourceError(f"{path} has no rows")

    def place(row: int, column: str) -> str:
        return f"row {row + 1} of column {column!r}"

    return Table(path, [_column(path, series) for series in frame], place)


def _column(path: Path, series: Any) -> TableColumn:
    import polars as pl

    from dre.io.readers.typed import text_column

    kind, name = series.dtype, series.name
    if series.null_count() == len(series):
        return TableColumn(name, EMPTY, np.full(len(series), ""))
    if kind.is_numeric():
        values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
        values[~np.isfinite(values)] = np.nan
        return TableColumn(name, NUMBER, values, integers=kind.is_integer() or bool((values == np.floor(values)).all()))
    if kind == pl.Boolean:
        return TableColumn(name, BOOLEAN, series.cast(pl.Float64).fill_null(float("nan")).to_numpy())
    if kind.is_temporal():
        return TableColumn(name, DATE, to_strings(series.cast(pl.String).to_list()))
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return text_column(name, series.cast(pl.String))
    raise SourceError(f"{path}: the column {name!r} holds {kind}; write vectors and other nested values as Parquet")


def _read_excel(path: Path, decimal: str | None) -> Table:
    try:
        import fastexcel  # noqa: F401  # polars needs it for spreadsheets
    except ImportError as problem:
        raise ImportError(f"{path} needs fastexcel: {INSTALL}") from problem
    import polars as pl

    with as_source_error(path):
        return table_of(path, pl.read_excel(path, engine="calamine"))


def _read_json_lines(path: Path, decimal: str | None) -> Table:
    import polars as pl

    with as_source_error(path):
        return table_of(path, pl.read_ndjson(path, infer_schema_length=None))


def _read_arrow(path: Path, decimal: str | None) -> Table:
    import polars as pl

    with as_source_error(path):
        return table_of(path, pl.read_ipc(path))


FORMATS = (
    SourceFormat((".xlsx", ".xls", ".ods"), read_table=_read_excel),
    SourceFormat((".jsonl", ".ndjson"), read_table=_read_json_lines),
    SourceFormat((".arrow", ".feather", ".ipc"), read_table=_read_arrow),
)
