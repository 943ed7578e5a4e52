"""Tables whose columns have types in the file: .xlsx, .json, .jsonl and .arrow, read by polars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.features import DROPPED, choose, source_of
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import (
    INSTALL,
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_strings,
)
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, Table, TableColumn, is_rounded
from dre.notation import unknown

MOST_TITLES, UNNAMED = 5, "__UNNAMED__"  # lines above a header, and the name that polars gives a column without one
ISO_DATE, ISO_TIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"


def open_frame(path: Path, frame: Any, part: str | None, options: ReadOptions, index: str | None = None) -> Source:
    """Open a DataFrame of polars: a column of vectors, or else the columns that can be features.

    Parameters
    ----------
    path : Path
    frame : polars.DataFrame
    part : str or None
        The column of vectors.
    options : ReadOptions
    index : str, default=None
        The column with the names of the rows, if the file says so.
    """
    if not len(frame):
        raise SourceError(f"{path} has no rows")
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    vector = choose_vector(path, [name for name in nested if _is_vector(frame.schema[name])], part)
    names = None if index is None else to_strings(frame[index].to_list())
    table = table_of(path, frame.drop([*nested, *([] if index is None else [index])]), names)
    if vector is None:
        source = source_of(table, options)
        ignored = [f"nested columns are ignored: {summarize_names(nested)}"] if nested and not options.features else []
        return replace(source, messages=[*source.messages, *ignored])
    return vector_source(table, vector, _vectors(path, frame[vector]), options)


def table_of(path: Path, frame: Any, names: Array | None = None) -> Table:
    """A table of a DataFrame without nested columns. Texts are examined for dates and codes; numbers in texts stay texts."""
    return Table(path, [_column(series) for series in frame], _place, names)


def choose_vector(path: Path, vectors: list[str], part: str | None) -> str | None:
    """The column of vectors that is named, or else the only one."""
    if part is not None:
        if part not in vectors:
            raise SourceError(f"{path}: {unknown('column of vectors', part, vectors)}")
        return part
    if len(vectors) > 1:
        raise SourceError(f"{path} has several columns of vectors, {summarize_names(vectors)}: pass vector='{vectors[0]}'")
    return vectors[0] if vectors else None


def vector_source(table: Table, vector: str, rows: Any, options: ReadOptions) -> Source:
    """Vectors with all columns of their table as metadata; its id names the rows."""
    chosen = choose(table, ReadOptions(drop=options.drop, labels=options.labels, id=options.id))
    metadata = {each.name: each.as_metadata() for each in table.columns if chosen.reasons.get(each.name) != DROPPED}
    names = table.names
    if chosen.names is not None:
        names = to_strings(metadata.pop(chosen.names).tolist())
    what = f"the rows are the vectors {vector!r} of {rows.shape[1]:,} values"
    messages = [f"{what}; other columns are not features"] if metadata and not options.where_possible else []
    return Source(rows, None, names, metadata, messages, chosen.names or Source.names_title)


def _place(row: int, column: str) -> str:
    return f"row {row + 1} of column {column!r}"


def _is_vector(kind: Any) -> bool:
    inner = getattr(kind, "inner", None)
    return inner is not None and bool(inner.is_numeric())


def _vectors(path: Path, series: Any) -> Array:
    import polars as pl

    lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
    lengths = lists.list.len().to_list()
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None or lengths[0] is None:
        raise vector_error(path, series.name, odd or 0, lengths[odd or 0], lengths)
    return np.asarray(lists.explode().to_numpy()).reshape(len(series), -1)


def vector_error(path: Path, name: str, row: int, found: int | None, lengths: Sequence[int | None]) -> SourceError:
    """A vector that is missing or too short or long."""
    wanted = next((length for length in lengths if length is not None), 0)
    what = "missing vector; drop the row" if found is None else f"{found:,} values, where others have {wanted:,}"
    return SourceError(f"{path}, column {name!r}, row {row} (counted from 0): {what}")


def _column(series: Any) -> TableColumn:
    import polars as pl

    from dre.io.readers.typed import text_column

    kind, name = series.dtype, series.name
    if series.null_count() == len(series):
        return TableColumn(name, EMPTY, np.full(len(series), ""))
    if kind.is_numeric():
        values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
        values[~np.isfinite(values)] = np.nan
        whole = kind.is_integer() or bool((values[~np.isnan(values)] == np.floor(values[~np.isnan(values)])).all())
        texts = to_strings(series.to_list()) if kind.is_integer() and is_rounded(values) else None
        return TableColumn(name, NUMBER, values, integers=whole, texts=texts)
    if kind == pl.Boolean:
        return TableColumn(name, BOOLEAN, series.cast(pl.Float64).fill_null(float("nan")).to_numpy())
    if kind in (pl.Date, pl.Datetime):
        return TableColumn(name, DATE, to_strings(series.dt.strftime(ISO_DATE if kind == pl.Date else ISO_TIME).to_list()))
    return text_column(name, series.cast(pl.String))


def _open_excel(path: Path, part: str | None, options: ReadOptions) -> Source:
    try:
        import fastexcel  # polars reads spreadsheets by it
    except ImportError as problem:
        raise ImportError(f"{path} needs fastexcel: {INSTALL}") from problem

    with as_source_error(path):
        sheets = fastexcel.read_excel(path).sheet_names
        if part is not None and part not in sheets:
            raise SourceError(f"{path}: {unknown('sheet', part, sheets)}")
        frame, above = _sheet(path, part or sheets[0])
        try:
            source = open_frame(path, _numbers_in_texts(frame), None, options)
        except SourceError as problem:
            if len(sheets) == 1 or part is not None:
                raise
            raise SourceError(f"{problem}.\n{_other_sheets(path, sheets)}") from problem
    notes = [_other_sheets(path, sheets)] if len(sheets) > 1 and part is None else []
    notes += [f"{above} line{'s' * (above > 1)} above the table left out"] if above else []
    return replace(source, messages=[*([] if options.features else notes), *source.messages])


def _sheet(path: Path, name: str) -> tuple[Any, int]:
    """A sheet, and how many lines above its header are left out: titles, and headers over several columns."""
    import polars as pl

    for above in range(MOST_TITLES):
        frame = pl.read_excel(path, engine="calamine", sheet_name=name, read_options={"header_row": above})
        unnamed = sum(column.startswith(UNNAMED) for column in frame.columns)
        if unnamed <= len(frame.columns) / 3:
            return frame, above
    return pl.read_excel(path, engine="calamine", sheet_name=name), 0


def _other_sheets(path: Path, sheets: list[str]) -> str:
    return f"the first of {len(sheets)} sheets is read, {sheets[0]!r}; {path.name}:{sheets[1]} reads another one"


def _numbers_in_texts(frame: Any) -> Any:
    """Columns of texts that are numbers, which spreadsheets often hold, as numbers."""
    import polars as pl

    from dre.io.readers.typed import decimal_mark, typed_columns

    texts = frame.select(pl.col(pl.String)).fill_null("")
    if not texts.width:
        return frame
    columns, _, _ = typed_columns(texts.columns, texts, decimal_mark(texts))
    numbers = {each.name: pl.Series(each.name, each.values, nan_to_null=True) for each in columns if each.kind == NUMBER}
    return frame.with_columns(**numbers)


def _open_json(path: Path, part: str | None, options: ReadOptions) -> Source:
    import polars as pl

    with as_source_error(path), path.open("rb") as file:
        is_array = file.read(1024).lstrip().startswith(b"[")
        read = pl.read_json if is_array else pl.read_ndjson
        return open_frame(path, read(path, infer_schema_length=None), part, options)


def _open_arrow(path: Path, part: str | None, options: ReadOptions) -> Source:
    import polars as pl

    with as_source_error(path):
        return open_frame(path, pl.read_ipc(path), part, options)


FORMATS = (
    SourceFormat((".xlsx", ".xls", ".ods"), part="sheet", open_with=_open_excel),
    SourceFormat((".jsonl", ".ndjson", ".json"), part="vector", open_with=_open_json),
    SourceFormat((".arrow", ".feather", ".ipc"), part="vector", open_with=_open_arrow),
)
