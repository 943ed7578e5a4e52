""".parquet: columns of numbers are the rows, read by row groups; the other columns stand beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.blocks import Blocks
from dre.io.readers.file_rows import FileRows
from dre.io.readers.source import INSTALL, Array, Format, Source, SourceError, listed, reading
from dre.io.readers.texts import plain, texts


def open_parquet(path: Path, part: str | None = None) -> Source:
    """Numbers without gaps are features; of an index that pandas wrote, its column is the names of the rows."""
    try:
        import pyarrow.parquet
        import pyarrow.types as kinds
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with reading(path):
        file = pyarrow.parquet.ParquetFile(path)
        schema = file.schema_arrow
        _check_once(path, schema.names)
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        features, beside, nested = [], [], []
        for column in schema:
            if kinds.is_nested(column.type):
                nested.append(column.name)
            elif column.name not in index and (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
                features.append(column.name)
            else:
                beside.append(column.name)
        if not features:
            raise SourceError(f"{path} has no column of numbers; its columns: {listed(schema.names)}. Encode them as numbers")
        dtype = np.result_type(*(schema.field(name).type.to_pandas_dtype() for name in features))
        read = file.read(columns=beside)
        metadata = {name: _values(read[name]) for name in beside}
        names = texts(metadata.pop(index[0]).tolist()) if len(index) == 1 and index[0] in metadata else None
        told = [f"columns of texts are no features: {listed([repr(name) for name in metadata])}"] if metadata else []
        told += [f"lists and the like are left out: {listed([repr(name) for name in nested])}"] if nested else []
        edges = np.cumsum([0, *(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))])
        shape = (int(edges[-1]), len(features))
        rows = FileRows(path, Blocks(shape, dtype, edges, _reader(path, file, features, edges, dtype=dtype)))
        return Source(rows, features, names, metadata, told)


def _check_once(path: Path, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise SourceError(f"{path} has {count} columns {name!r}: rename all but one")


def _reader(path: Path, file: Any, features: list[str], edges: Array, *, dtype: Any) -> Callable[[int, int], Array]:
    def load(start: int, stop: int) -> Array:
        group = file.read_row_group(int(np.searchsorted(edges, start, side="right")) - 1, columns=features)
        out = np.empty((stop - start, len(features)), dtype)
        for i, name in enumerate(features):
            column = group[name]
            if column.null_count:
                row = start + int(np.flatnonzero(column.is_null().to_numpy())[0])
                remedy = "drop that row, or fill it in with sklearn.impute.SimpleImputer"
                raise SourceError(f"{path}, column {name!r}, row {row} (counted from 0) is missing: {remedy}")
            out[:, i] = column.to_numpy()
        return out

    return load


def _values(column: Any) -> Array:
    """Numbers and yes or no as they are, all else as texts; what is missing is no number, or an empty text."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_integer(column.type) or kinds.is_floating(column.type):
        return plain(column.to_numpy())
    return plain(column.to_numpy()) if kinds.is_boolean(column.type) and not column.null_count else texts(column.to_pylist())


FORMAT = Format((".parquet", ".pq"), open_parquet)
