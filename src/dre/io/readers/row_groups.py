"""Rows of a Parquet file in blocks that are smaller than its row groups, decoded one after the other.

A row group can be larger than the memory should hold: writers put a million rows into one by default. Its pages are decoded
from the first to the last, so a pass over the file decodes each once; going back means beginning the group again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.rows import chunk_length
from dre.io.readers.memory import CELL_BYTES, check_memory
from dre.io.readers.source import Array, SourceError, summarize_names

REMEDY = "write the file with smaller row groups, or fewer columns"


def open_file(path: Path, **options: Any) -> Any:
    """Open a Parquet file. Pages are compared with their checksums, and read through a buffer, not a row group at once."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, page_checksum_verification=True, buffer_size=2**20, **options)


def column_places(file: Any, columns: Sequence[str] | None = None) -> list[int]:
    """Places of some columns, or of all, in every row group; those of vectors are called ``name.list.element``."""
    schema = file.metadata.schema
    if columns is None:
        return list(range(len(schema)))
    paths, wanted = [schema.column(j).path for j in range(len(schema))], set(columns)
    return [j for j, each in enumerate(paths) if each in wanted or each.partition(".")[0] in wanted]


class ColumnSizes:
    """Values and bytes that some columns of a row group declare; the description of a group is read once."""

    def __init__(self, file: Any, columns: Sequence[str]) -> None:
        self._file, self._places, self._known = file, column_places(file, columns), dict[int, tuple[int, int]]()
        schema = file.schema_arrow  # made anew each time
        kinds = [schema.field(name).type for name in columns]
        are_fixed = all(hasattr(kind, "list_size") or not kind.num_fields for kind in kinds)
        self._width = sum(getattr(kind, "list_size", 1) for kind in kinds) if are_fixed else None  # values of a row

    def __getitem__(self, group: int) -> int:
        """Bytes that a group takes in memory."""
        return self._of(group)[1]

    def values(self, group: int) -> int:
        """Number of values of a group."""
        return self._of(group)[0]

    def needed(self, group: int, rows: int, width: int | None = None) -> float:
        """Bytes of so many rows of a group; of all its rows if one of them may have most of the values.

        Where the type leaves the length of a vector open, ``width`` is the number of values that each row should have.
        """
        n, values = self._file.metadata.row_group(group).num_rows, self.values(group)
        is_regular = width is not None and values == n * width
        if self._width is not None:
            is_regular = values <= n * self._width  # a missing vector counts as one value
        return self[group] * min(1.0, rows / max(1, n)) if is_regular else self[group]

    def _of(self, group: int) -> tuple[int, int]:
        if group not in self._known:
            found = self._file.metadata.row_group(group)
            chunks = [found.column(place) for place in self._places]
            size = sum(max(CELL_BYTES * each.num_values, each.total_uncompressed_size) for each in chunks)
            self._known[group] = sum(each.num_values for each in chunks), size
        return self._known[group]


class RowGroups:
    """Columns of a Parquet file, read in blocks.

    Parameters
    ----------
    path : Path
    file : pyarrow.parquet.ParquetFile
    columns : list of str
    width : int
        Values of a row: the number of columns, or the length of the vectors in the only one.
    values : int
        Values of a block, at most.

    Attributes
    ----------
    groups : array of shape (n_groups + 1,)
        Rows at which row groups begin and end.
    edges : array of shape (n_blocks + 1,)
        Rows at which blocks begin and end. Each block lies in one group.
    """

    def __init__(self, path: Path, file: Any, columns: list[str], width: int, values: int) -> None:
        self._path, self._file, self._columns, self._width = path, file, columns, width
        self.groups = group_edges(file)
        self._step = chunk_length((width,), values)
        pieces = [np.arange(a, b, self._step) for a, b in pairwise(self.groups.tolist())]
        self.edges = np.concatenate([*pieces, self.groups[-1:]]).astype(np.int64)
        self._sizes = ColumnSizes(file, columns)
        self._group, self._at = -1, 0
        self._batches: Iterator[Any] = iter(())

    def read(self, start: int, stop: int) -> Any:
        """Read a block; a table of Arrow."""
        import pyarrow

        group = int(np.searchsorted(self.groups, start, side="right")) - 1
        if group != self._group or start < self._at:
            self._begin(group)
        parts = []
        while self._at < stop:
            batch = next(self._batches, None)
            if batch is None:
                raise self._damaged(group)
            if self._at >= start:
                parts.append(batch)
            self._at += batch.num_rows
        table = pyarrow.Table.from_batches(parts)
        if table.num_rows != stop - start:
            raise self._damaged(group)
        return table

    def _begin(self, group: int) -> None:
        rows = int(self.groups[group + 1] - self.groups[group])
        block = min(rows, self._step)
        needed = max(self._sizes.needed(group, block, self._width), CELL_BYTES * block * len(self._columns))
        check_memory(self._path, needed, f"{block:,} rows of {summarize_names(self._columns, 3)}", REMEDY)
        self._batches = self._file.iter_batches(self._step, row_groups=[group], columns=self._columns)
        self._group, self._at = group, int(self.groups[group])

    def _damaged(self, group: int) -> SourceError:
        rows = self.groups[group + 1] - self.groups[group]
        return SourceError(
            f"{self._path} is damaged: its row group {group} has other rows than the {rows:,} that it declares; write it again"
        )


def group_edges(file: Any) -> Array:
    """Rows at which the row groups of a file begin and end."""
    counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return np.cumsum([0, *counts]).astype(np.int64)
