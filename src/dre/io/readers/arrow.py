"""Arrow files (.arrow, .feather), and tables of Arrow as DataFrames of polars, if they fit into memory once unfolded.

Arrow can store a billion equal values, or one long text for a million rows, in a small file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.frames import open_frame
from dre.io.readers.memory import CELL_BYTES, STRING_BYTES, check_memory
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import INSTALL, Source, SourceFormat, as_source_error

FEWER = "choose fewer columns or rows, and save them in a file of their own"
MAGIC, CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"  # at the end of a file, and at the beginning of a message
DICTIONARIES, BATCHES = 2, 3  # fields of the footer
BLOCK = "<qi4xq"  # place of a message, length of its metadata, length of its body


def to_frame(path: Path, table: Any) -> Any:
    """Convert a table of Arrow to a DataFrame of polars; what a dictionary holds once is unfolded if it fits."""
    import polars as pl
    from pyarrow import types

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_folded = types.is_dictionary(column.type)
        if is_folded:
            check_memory(path, _unfolded(column), f"the column {name!r} of {len(column):,} rows", FEWER)
        columns.append(column.cast(column.type.value_type) if is_folded else column)
    what = f"a table of {table.num_rows:,} rows by {table.num_columns:,} columns"
    check_memory(path, CELL_BYTES * table.num_rows * table.num_columns, what, FEWER)
    return pl.from_arrow(type(table).from_arrays(columns, names=table.column_names))


def _unfolded(column: Any) -> int:
    """Bytes of a column without its dictionary."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind, total = column.type.value_type, 0
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    for chunk in column.chunks:
        if is_text:
            total += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        total += STRING_BYTES * len(chunk)
    return int(total)


def _open_arrow(path: Path, part: str | None, options: ReadOptions) -> Source:
    try:
        import pyarrow.ipc
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with as_source_error(path), pyarrow.memory_map(str(path)) as file:
        schema = pyarrow.ipc.open_file(file).schema
        rows, size = _unfolded_size(path)
        what = f"a table of {rows:,} rows by {len(schema.names):,} columns"
        check_memory(path, size + CELL_BYTES * rows * len(schema.names), what, FEWER)
        table = pyarrow.ipc.open_file(file).read_all()
        table.validate(full=True)
        return open_frame(path, to_frame(path, table), part, options)


def _unfolded_size(path: Path) -> tuple[int, int]:
    """Rows and bytes of all record batches and dictionaries, as their messages declare them."""
    rows = size = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        length = struct.unpack_from("<i", content, len(content) - len(MAGIC) - 4)[0]
        footer = _Flat(content[len(content) - len(MAGIC) - 4 - length :])
        for field, in_batch in ((DICTIONARIES, 1), (BATCHES, None)):
            for offset, metadata, _ in footer.structs(field, BLOCK):
                start = offset + (8 if content[offset : offset + 4] == CONTINUED else 4)
                batch = _Flat(content[start : offset + metadata]).table(2)
                batch = batch if in_batch is None else batch.table(in_batch)
                rows += batch.integer(0) if in_batch is None else 0
                size += sum(_buffer_sizes(batch, content, offset + metadata))
    return rows, size


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
