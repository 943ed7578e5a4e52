"""Parquet: a column of vectors, or the columns that can be features; large files are read in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.arrays import handle_missing
from dre.io.readers.arrow_frames import is_nested, is_vector, to_frame
from dre.io.readers.frames import choose_vector, open_frame, table_of, vector_source
from dre.io.readers.large_tables import BLOCK_VALUES, SMALL_BYTES, fits, open_large_table, open_large_vectors, vector_rows
from dre.io.readers.memory import CELL_BYTES, check_memory, check_rows
from dre.io.readers.options import ReadOptions
from dre.io.readers.row_groups import REMEDY, ColumnSizes, RowGroups, column_places, group_edges, open_file
from dre.io.readers.source import (
    INSTALL,
    EmptySourceError,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_strings,
)
from dre.io.readers.table import Table
from dre.runtime import available_bytes

TEXT_TYPE = "BYTE_ARRAY"
HELD_BYTES = 2**30  # texts that are unfolded at once where the available memory is unknown


def _open_parquet(path: Path, part: str | None, options: ReadOptions) -> Source:
    """Take a column of vectors as the rows, or else the features; the index that pandas wrote names the rows."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with as_source_error(path):
        table = ParquetTable.open(path)
        schema = table.schema
        _check_unique(path, schema.names)
        if not len(table):
            raise EmptySourceError(f"{path} has no rows")
        flat = [column.name for column in schema if not is_nested(column.type)]
        vector = choose_vector(path, [name for name in schema.names if is_vector(schema.field(name).type)], part)
        index = _index(schema)
        check_rows(path, (len(table), 1), np.dtype(np.float64), "a table")
        if vector is not None:
            return _open_vectors(table, vector, [name for name in flat if name != index], options, index)
        if not flat:
            raise SourceError(f"{path} has no column of numbers; its columns: {summarize_names(schema.names)}")
        if fits(table, flat, options):
            source = open_frame(path, to_frame(path, table.read(flat)), None, options, index)
        else:
            source = open_large_table(table, flat, options, index)
        nested = [name for name in schema.names if is_nested(schema.field(name).type)]
        ignored = [f"nested columns are ignored: {summarize_names(nested)}"] if nested and not options.features else []
        return replace(source, messages=[*source.messages, *ignored])


def _open_vectors(table: ParquetTable, vector: str, others: list[str], options: ReadOptions, index: str | None) -> Source:
    """Vectors, with the other columns held if they are small."""
    if table.size([*others, *([] if index is None else [index])]) > SMALL_BYTES:
        return open_large_vectors(table, vector, others, options, index)
    path = table.path
    names = None if index is None else to_strings(to_frame(path, table.read([index]))[index].to_list())
    held: Table = table_of(path, to_frame(path, table.read(others)), names)
    return handle_missing(path, vector_source(held, vector, vector_rows(table, vector, options), options), options)


class ParquetTable:
    """An open Parquet file."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file, self.schema = path, file, file.schema_arrow

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Open a file; texts that unfold to much more than memory stay in dictionaries."""
        file, available = open_file(path), available_bytes() or HELD_BYTES
        chunks = (column for column in _column_chunks(file) if column.physical_type == TEXT_TYPE)
        folded = {each.path_in_schema for each in chunks if each.num_values * each.total_uncompressed_size > available}
        return cls(path, open_file(path, read_dictionary=sorted(folded)) if folded else file)

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def size(self, columns: list[str]) -> int:
        """Bytes of columns in memory, at most."""
        sizes = ColumnSizes(self._file, columns)
        return sum(sizes[i] for i in range(self._file.num_row_groups))

    def read(self, columns: list[str]) -> Any:
        """Read columns, if what they declare fits into memory; a table of Arrow."""
        rows = len(self)
        needed = max(self.size(columns), CELL_BYTES * rows * len(columns))
        check_memory(self.path, needed, f"{rows:,} rows of {summarize_names(columns, 3)}", REMEDY)
        table = self._file.read(columns=columns)
        if table.num_rows != rows:
            raise SourceError(
                f"{self.path} is damaged: it has {table.num_rows:,} rows where it declares {rows:,}; write it again"
            )
        return table

    def head(self, columns: list[str], rows: int) -> Any:
        """Read the first rows, or all if there are fewer; a table of Arrow."""
        import pyarrow

        sizes, edges = ColumnSizes(self._file, columns), group_edges(self._file)
        groups = range(int(np.searchsorted(edges, min(rows, int(edges[-1])))))
        what = f"the first {rows:,} rows of {summarize_names(columns, 3)}"
        check_memory(self.path, sum(sizes.needed(i, rows) for i in groups), what, REMEDY)
        parts, count = [], 0
        for batch in self._file.iter_batches(rows, row_groups=list(groups), columns=columns):
            parts.append(batch.slice(0, rows - count))
            count += len(parts[-1])
            if count == rows:
                break
        return pyarrow.Table.from_batches(parts)

    def blocks(self, columns: list[str], width: int, values: int = BLOCK_VALUES) -> RowGroups:
        """Columns with so many values in a row, in blocks of at most so many values."""
        return RowGroups(self.path, self._file, columns, width, values)

    def scan(self) -> Any:
        """A lazy frame of polars."""
        import polars as pl

        return pl.scan_parquet(self.path)

    def is_complete(self, columns: list[str]) -> bool:
        """Whether the statistics of the file exclude missing values of these columns."""
        known = (column.statistics for column in _column_chunks(self._file, columns))
        return all(each is not None and each.has_null_count and not each.null_count for each in known)


def _column_chunks(file: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """What the file says about the columns of its row groups."""
    places = column_places(file, columns)
    for i in range(file.num_row_groups):
        group = file.metadata.row_group(i)
        yield from map(group.column, places)


def _index(schema: Any) -> str | None:
    """The one column that pandas wrote as the index; a range or an index of several levels names no rows."""
    columns = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    return columns[0] if len(columns) == 1 and columns[0] in schema.names else None


def _check_unique(path: Path, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise SourceError(f"{path} has {count} columns {name!r}: rename all but one")


FORMATS = (SourceFormat((".parquet", ".pq"), part="vector", open_with=_open_parquet),)
