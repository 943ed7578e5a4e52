""".parquet: a column per component, and one of the names of the rows where they have any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dre.io.readers.source import INSTALL
from dre.io.writers.sink import Array, Embedding, Format


class _Parquet:
    def __init__(self, writer: Any, schema: Any, embedding: Embedding) -> None:
        self._writer, self._schema, self._embedding, self._at = writer, schema, embedding, 0

    def write(self, places: Array) -> None:
        import pyarrow

        columns: list[Any] = list(places.T)
        if self._embedding.names is not None:
            columns.insert(0, [str(name) for name in self._embedding.names[self._at : self._at + len(places)]])
        self._at += len(places)
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))


@contextmanager
def open_parquet(path: Path, embedding: Embedding) -> Iterator[_Parquet]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as problem:
        raise ImportError(f"{path.name} needs pyarrow: {INSTALL}") from problem
    named = [("name", pyarrow.string())] if embedding.names is not None else []
    schema = pyarrow.schema([*named, *((column, pyarrow.float32()) for column in embedding.columns)])
    with ParquetWriter(path, schema) as writer:
        yield _Parquet(writer, schema, embedding)


FORMAT = Format((".parquet",), open_parquet)
