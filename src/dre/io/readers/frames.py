"""Tables whose columns have types, as DataFrames of polars; also those that polars reads itself, .json and .jsonl."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.arrays import handle_missing
from dre.io.readers.features import DROPPED, choose
from dre.io.readers.memory import CELL_BYTES, SMALLER_TEXT, STRING_BYTES, check_memory, read_text_bytes
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import (
    Array,
    EmptySourceError,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_strings,
)
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, Table, TableColumn, is_rounded
from dre.io.readers.table_source import source_of
from dre.notation import unknown
from dre.runtime import available_bytes

KEY = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*+:')  # of an object
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
        raise EmptySourceError(f"{path} has no rows")
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    vector = choose_vector(path, [name for name in nested if _is_vector(frame.schema[name])], part)
    names = None if index is None else to_strings(frame[index].to_list())
    table = table_of(path, frame.drop([*nested, *([] if index is None else [index])]), names)
    if vector is None:
        source = source_of(table, options)
        ignored = [f"nested columns are ignored: {summarize_names(nested)}"] if nested and not options.features else []
        return replace(source, messages=[*source.messages, *ignored])
    return handle_missing(path, vector_source(table, vector, _vectors(path, frame[vector], options), options), options)


def table_of(path: Path, frame: Any, names: Array | None = None) -> Table:
    """A table of a DataFrame without nested columns. Texts are examined for dates and codes; numbers in texts stay texts."""
    return Table(path, [_column(path, series) for series in frame], _place, names)


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
        del metadata[chosen.names]
        names = table[chosen.names].as_names()
    what = f"the rows are the vectors {vector!r} of {rows.shape[1]:,} values"
    messages = [f"{what}; other columns are not features"] if metadata and not options.where_possible else []
    return Source(rows, None, names, metadata, messages, chosen.names or Source.names_title)


def _place(row: int, column: str) -> str:
    return f"row {row + 1} of column {column!r}"


def _is_vector(kind: Any) -> bool:
    inner = getattr(kind, "inner", None)
    return inner is not None and bool(inner.is_numeric())


def _vectors(path: Path, series: Any, options: ReadOptions) -> Array:
    """The vectors of a column; those that are missing are NaN if rows may lack values."""
    import polars as pl

    lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
    present = lists.is_not_null().to_numpy()
    if not present.any():
        raise no_vector(path, series.name, "no row")
    if not (present.all() or options.allows_gaps):
        raise vector_error(path, series.name, int(present.argmin()))
    valid = lists.filter(lists.is_not_null())
    check_lengths(path, series.name, valid.list.len().to_numpy(), np.flatnonzero(present))
    vectors = np.asarray(valid.explode().to_numpy()).reshape(len(valid), -1)
    return vectors if present.all() else with_missing_rows(vectors, present)


def check_lengths(path: Path, name: str, lengths: Array, rows: Array) -> None:
    """Raise a `SourceError` that names the first row whose vector is not as long as that of the first row."""
    different = np.flatnonzero(lengths != lengths[0])
    if len(different):
        raise vector_error(path, name, int(rows[different[0]]), int(lengths[different[0]]), int(lengths[0]))


def with_missing_rows(vectors: Array, present: Array) -> Array:
    """Vectors at the rows that have one, and NaN at the others."""
    dtype = vectors.dtype if vectors.dtype.kind == "f" else np.dtype(np.float64)
    out = np.full((len(present), *vectors.shape[1:]), np.nan, dtype)
    out[present] = vectors
    return out


def vector_error(path: Path, name: str, row: int, found: int | None = None, wanted: int = 0) -> SourceError:
    """A vector that is missing or too short or long."""
    what = "missing vector; pass missing='drop', missing='mean' or missing='median'"
    if found is not None:
        what = f"{found:,} values, where others have {wanted:,}"
    return SourceError(f"{path}, column {name!r}, row {row} (counted from 0): {what}")


def no_vector(path: Path, name: str, where: str) -> SourceError:
    """A column whose vectors are missing, so that their length is not known."""
    return SourceError(f"{path}, column {name!r}: {where} has a vector; leave out rows without one, or choose another column")


def _column(path: Path, series: Any) -> TableColumn:
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
    texts = series.cast(pl.String)
    size = int(texts.str.len_bytes().sum()) + STRING_BYTES * len(texts)
    check_memory(path, size, f"the text of the column {name!r}", "shorten it, or leave it out of the file")
    return text_column(name, texts)


def _open_json(path: Path, part: str | None, options: ReadOptions) -> Source:
    import polars as pl

    with as_source_error(path):
        text = read_text_bytes(path)
        is_array = text[:1024].lstrip().startswith(b"[")
        _check_keys(path, text)
        read = pl.read_json if is_array else pl.read_ndjson
        return open_frame(path, read(text, infer_schema_length=None), part, options)


def _check_keys(path: Path, text: bytes) -> None:
    """Check the memory of a table with a row for each object and a column for each different key."""
    rows, available = text.count(b"{"), available_bytes()
    if available is None or CELL_BYTES * rows * text.count(b":") <= available:
        return
    keys = len({each.group(1) for each in KEY.finditer(text)})
    check_memory(path, CELL_BYTES * rows * keys, f"a table of {rows:,} objects with {keys:,} different keys", SMALLER_TEXT)


FORMATS = (SourceFormat((".jsonl", ".ndjson", ".json"), part="vector", open_with=_open_json),)
