"""Arrow files (.arrow, .feather): held in memory if they are small once unfolded, else read by record batch."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.rows import chunk_length
from dre.io.readers.arrow_frames import FEWER, is_nested, is_vector, to_frame
from dre.io.readers.frames import choose_vector, open_frame
from dre.io.readers.large_tables import BLOCK_VALUES, held_bytes, open_large_table, open_large_vectors
from dre.io.readers.memory import CELL_BYTES, check_memory, check_rows
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import INSTALL, Array, Source, SourceFormat, as_source_error, summarize_names

MAGIC, CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"  # at the end of a file, and at the beginning of a message
DICTIONARIES, BATCHES = 2, 3  # fields of the footer
BLOCK = "<qi4xq"  # place of a message, length of its metadata, length of its body
SMALLER_BATCHES = "write the file with smaller record batches"


def _open_arrow(path: Path, part: str | None, options: ReadOptions) -> Source:
    try:
        import pyarrow.ipc
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with as_source_error(path), pyarrow.memory_map(str(path)) as file:
        schema = pyarrow.ipc.open_file(file).schema
        sizes = BatchSizes(path)
        rows, needed = sum(sizes.rows), sizes.dictionaries + sum(sizes.bytes)
        needed += CELL_BYTES * rows * len(schema.names)
        is_plain = not sizes.dictionaries and len(set(schema.names)) == len(schema.names)
        if needed > held_bytes() and is_plain and rows:
            return _open_large(ArrowTable(path, schema, sizes), part, options)
        check_memory(path, needed, f"a table of {rows:,} rows by {len(schema.names):,} columns", FEWER)
        table = pyarrow.ipc.open_file(file).read_all()
        table.validate(full=True)
        return open_frame(path, to_frame(path, table), part, options)


def _open_large(table: ArrowTable, part: str | None, options: ReadOptions) -> Source:
    """Vectors, or features, that are read by record batch."""
    schema = table.schema
    check_rows(table.path, (len(table), 1), np.dtype(np.float64), "a table")
    flat = [column.name for column in schema if not is_nested(column.type)]
    vector = choose_vector(table.path, [name for name in schema.names if is_vector(schema.field(name).type)], part)
    if vector is not None:
        return open_large_vectors(table, vector, flat, options, None)
    return open_large_table(table, flat, options, None)


class BatchSizes:
    """Rows of each record batch, and bytes of batches and dictionaries, as their messages declare them."""

    def __init__(self, path: Path) -> None:
        self.rows, self.bytes, self.dictionaries = list[int](), list[int](), 0
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            length = struct.unpack_from("<i", content, len(content) - len(MAGIC) - 4)[0]
            footer = _Flat(content[len(content) - len(MAGIC) - 4 - length :])
            for offset, metadata, _ in footer.structs(DICTIONARIES, BLOCK):
                batch = _message(content, offset, metadata).table(1)
                self.dictionaries += sum(_buffer_sizes(batch, content, offset + metadata))
            for offset, metadata, _ in footer.structs(BATCHES, BLOCK):
                batch = _message(content, offset, metadata)
                self.rows.append(batch.integer(0))
                self.bytes.append(sum(_buffer_sizes(batch, content, offset + metadata)))


def _message(content: mmap.mmap, offset: int, metadata: int) -> _Flat:
    start = offset + (8 if content[offset : offset + 4] == CONTINUED else 4)
    return _Flat(content[start : offset + metadata]).table(2)


class ArrowTable:
    """An Arrow file that is mapped into memory."""

    def __init__(self, path: Path, schema: Any, sizes: BatchSizes) -> None:
        self.path, self.schema, self._sizes = path, schema, sizes

    @classmethod
    def open(cls, path: Path) -> ArrowTable:
        """Open a file."""
        import pyarrow.ipc

        with pyarrow.memory_map(str(path)) as file:
            return cls(path, pyarrow.ipc.open_file(file).schema, BatchSizes(path))

    def __len__(self) -> int:
        return sum(self._sizes.rows)

    def read(self, columns: list[str]) -> Any:
        """Read columns as a whole; a table of Arrow."""
        return self.head(columns, len(self))

    def head(self, columns: list[str], rows: int) -> Any:
        """Read the first rows, or all if there are fewer; a table of Arrow."""
        import pyarrow

        blocks = self.blocks(columns, len(columns))
        rows = min(rows, len(self))
        ends = [(a, b) for a, b in pairwise(blocks.edges.tolist()) if a < rows]
        what = f"the first {rows:,} rows of {summarize_names(columns, 3)}"
        check_memory(self.path, CELL_BYTES * rows * len(columns), what, FEWER)
        return pyarrow.concat_tables([blocks.read(a, b) for a, b in ends]).slice(0, rows)

    def blocks(self, columns: list[str], width: int, values: int = BLOCK_VALUES) -> RecordBatches:
        """Columns with so many values in a row, in blocks of at most so many values."""
        return RecordBatches(self.path, self.schema, columns, chunk_length((width,), values), self._sizes)

    def scan(self) -> Any:
        """A lazy frame of polars."""
        import polars as pl

        return pl.scan_ipc(self.path)

    def is_complete(self, columns: list[str]) -> bool:
        """Arrow files do not tell."""
        return False


class RecordBatches:
    """Columns of an Arrow file in blocks, each a part of a record batch. Other columns are neither read nor decompressed."""

    def __init__(self, path: Path, schema: Any, columns: list[str], step: int, sizes: BatchSizes) -> None:
        import pyarrow.ipc

        self._path, self._sizes = path, sizes
        self.groups: Array = np.cumsum([0, *sizes.rows]).astype(np.int64)
        pieces = [np.arange(a, b, step) for a, b in pairwise(self.groups.tolist())]
        self.edges: Array = np.concatenate([*pieces, self.groups[-1:]]).astype(np.int64)
        options = pyarrow.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in columns])
        self._reader = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)), options=options)
        self._batch: tuple[int, Any] = (-1, None)

    def read(self, start: int, stop: int) -> Any:
        """Read a block; a table of Arrow."""
        import pyarrow

        i = int(np.searchsorted(self.groups, start, side="right")) - 1
        if i != self._batch[0]:
            check_memory(self._path, self._sizes.bytes[i], f"record batch {i} of {self._sizes.rows[i]:,} rows", SMALLER_BATCHES)
            batch = self._reader.get_batch(i)
            if batch.num_rows != self._sizes.rows[i]:
                raise ValueError(f"record batch {i} has {batch.num_rows:,} rows where it declares {self._sizes.rows[i]:,}")
            batch.validate(full=True)
            self._batch = (i, batch)
        first = int(self.groups[i])
        return pyarrow.Table.from_batches([self._batch[1].slice(start - first, stop - start)])


def _buffer_sizes(batch: _Flat, content: mmap.mmap, body: int) -> Iterator[int]:
    """Sizes of the buffers of a batch; a compressed one begins with its size, or -1."""
    for offset, length in batch.structs(2, "<qq"):
        is_compressed = batch.has(3) and length >= 8
        yield max(length, struct.unpack_from("<q", content, body + offset)[0] if is_compressed else 0)


class _Flat:
    """A table of a flatbuffer; its fields are numbered."""

    def __init__(self, content: bytes, at: int | None = None) -> None:
        self._content = content
        self._at: int = struct.unpack_from("<I", content, 0)[0] if at is None else at
        self._fields: int = self._at - struct.unpack_from("<i", content, self._at)[0]

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def integer(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from("<q", self._content, place)[0])

    def table(self, field: int) -> _Flat:
        place = self._place(field)
        if place is None:
            raise ValueError("a message lacks its header")
        return _Flat(self._content, place + struct.unpack_from("<I", self._content, place)[0])

    def structs(self, field: int, layout: str) -> list[tuple[int, ...]]:
        """A vector of structs of integers."""
        place = self._place(field)
        if place is None:
            return []
        place += struct.unpack_from("<I", self._content, place)[0]
        count = struct.unpack_from("<I", self._content, place)[0]
        return list(struct.iter_unpack(layout, self._content[place + 4 : place + 4 + struct.calcsize(layout) * count]))

    def _place(self, field: int) -> int | None:
        size = struct.unpack_from("<H", self._content, self._fields)[0]
        if 4 + 2 * field >= size:
            return None
        offset: int = struct.unpack_from("<H", self._content, self._fields + 4 + 2 * field)[0]
        return self._at + offset if offset else None


FORMATS = (SourceFormat((".arrow", ".feather", ".ipc"), part="vector", open_with=_open_arrow),)
