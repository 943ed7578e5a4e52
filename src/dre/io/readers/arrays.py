"""Read options on files that hold arrays: columns by name, names of the rows, and missing values."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.rows import HostRows, Rows, RowSubset, chunk_length, describe_row, in_blocks, is_rows
from dre.io.readers.features import dropped_message, expand
from dre.io.readers.lazy_columns import change_columns
from dre.io.readers.memory import CELL_BYTES, check_memory
from dre.io.readers.missing import complete
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, DroppedRows, Source, SourceError, to_strings
from dre.io.readers.table import Table
from dre.notation import unknown

MOST_EXAMINED = 2**27  # values of an array that is read for its gaps alone


def with_options(path: Path, source: Source, options: ReadOptions) -> Source:
    """Choose columns, name the rows and handle missing values, as far as an array allows."""
    if not options.where_possible and (options.categories or options.decimal):
        raise SourceError(f"{path} holds an array, not a table: leave out the options for categories and decimals")
    source = _named(path, source, options.id)
    if options.columns or options.drop:
        source = _selected(path, source, options)
    return handle_missing(path, source, options)


def select_columns(rows: Any, columns: list[int]) -> Any:
    """Select columns of an array or a sparse matrix; those of lazy rows are selected when they are read."""
    if is_rows(rows):
        return ColumnSubset(rows, columns)
    selected = rows[:, columns]
    return selected if scipy.sparse.issparse(rows) else np.ascontiguousarray(selected)


class ColumnSubset:
    """`Rows` restricted to some columns; reads from the underlying rows on demand."""

    def __init__(self, rows: Rows, columns: list[int]) -> None:
        self.shape = (rows.shape[0], len(columns))
        self._rows, self._columns, self.in_blocks = rows, torch.tensor(columns), in_blocks(rows)
        self.edges = getattr(rows, "edges", None)

    def place(self, row: int) -> str:
        return describe_row(self._rows, row)

    def read(self, start: int, stop: int) -> Tensor:
        return self._select(self._rows.read(start, stop))

    def take(self, ids: Tensor) -> Tensor:
        return self._select(self._rows.take(ids))

    def _select(self, x: Tensor) -> Tensor:
        return x.index_select(1, self._columns.to(x.device))


def _named(path: Path, source: Source, title: str | None) -> Source:
    """Name the rows by a column of the metadata."""
    if title is None:
        return source
    if title not in source.metadata:
        raise SourceError(f"{path}: {unknown('column', title, list(source.metadata))}")
    metadata = {name: values for name, values in source.metadata.items() if name != title}
    return replace(source, names=to_strings(source.metadata[title].tolist()), names_title=title, metadata=metadata)


def _selected(path: Path, source: Source, options: ReadOptions) -> Source:
    if source.columns is None:
        raise SourceError(f"{path} has no names of columns: its columns cannot be chosen")
    metadata = {name: values for name, values in source.metadata.items() if name not in options.drop}
    dropped = set(expand([name for name in options.drop if name not in source.metadata], source.columns))
    wanted = expand(options.columns, source.columns) or source.columns
    position = {name: i for i, name in enumerate(source.columns)}
    names = [name for name in wanted if name not in dropped]
    if not names:
        raise SourceError(f"{path}: no column is left; name fewer columns to drop")
    rows = select_columns(source.rows, [position[name] for name in names])
    return replace(source, rows=rows, columns=names, metadata=metadata)


def handle_missing(path: Path, source: Source, options: ReadOptions) -> Source:
    """Drop or fill rows with missing values, as the options say."""
    if not options.allows_gaps:
        return source
    if options.where_possible and math.prod(source.rows.shape) > MOST_EXAMINED:
        return source  # a gap is named when it is read
    kept = _complete_rows(source.rows)
    if kept is None or kept.all():
        return replace(source, fill=dict(options.fill))
    if options.missing == "drop" and not options.fill:
        return without_gaps(path, source, kept)
    if len(source.rows.shape) != 2:
        raise SourceError(f"{path}: images with missing pixels cannot be filled in; pass missing='drop'")
    needed, remedy = CELL_BYTES * math.prod(source.rows.shape), "split the file" if options.fill else "pass missing='drop'"
    check_memory(path, needed, f"an array of {source.rows.shape[0]:,} rows whose gaps are filled in", remedy)
    rows = source.rows.read(0, source.rows.shape[0]).numpy() if is_rows(source.rows) else source.rows
    values = np.array(rows, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    names = source.columns or [str(i) for i in range(values.shape[1])]
    found = complete(Table(path, [], _place, source.names), names, values, options.missing, options.fill)
    if found.dropped is not None:
        return without_gaps(path, replace(source, fill=found.fill), found.dropped.kept)
    return replace(source, rows=found.values, fill=found.fill)


def _place(row: int, column: str) -> str:
    return f"row {row} of column {column} (counted from 0)"


def _complete_rows(rows: Any) -> Array | None:
    """Whether all values of each row are finite, (n,); None for integers and sparse matrices, which have no gaps."""
    if scipy.sparse.issparse(rows):
        return None
    lazy = rows if is_rows(rows) else HostRows(rows)
    n, step = lazy.shape[0], chunk_length(lazy.shape[1:])
    if n == 0 or not lazy.read(0, 1).is_floating_point():
        return None
    pieces = (lazy.read(start, min(n, start + step)) for start in range(0, n, step))
    return np.concatenate([part.isfinite().flatten(1).all(1).numpy() for part in pieces])


def without_gaps(path: Path, source: Source, kept: Array) -> Source:
    """The source without the rows that are not kept, which leave gaps in every output."""
    if not kept.any():
        raise SourceError(f"{path}: every row lacks a value; leave out the columns that lack most of them")
    ids = np.flatnonzero(kept)
    dropped = DroppedRows(kept, source.names)
    return replace(
        source,
        rows=RowSubset(source.rows, torch.from_numpy(ids)) if is_rows(source.rows) else source.rows[ids],
        names=None if source.names is None else source.names[ids],
        metadata=change_columns(source.metadata, lambda values: values[ids]),
        messages=[*source.messages, *dropped_message(dropped)],
        dropped=dropped,
    )
