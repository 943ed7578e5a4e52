"""Parquet: a column of vectors, or the numeric columns, are the rows, read by row group; other columns are metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.file_rows import BlockArray, FileRows
from dre.io.readers.source import (
    INSTALL,
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_numbers_or_strings,
    to_strings,
)
from dre.notation import unknown

TENSOR = "arrow.fixed_shape_tensor"  # name of the Arrow extension


def _open_parquet(path: Path, part: str | None) -> Source:
    """Take a column of vectors as the rows, or else the numeric columns; the index that pandas wrote becomes the row names."""
    try:
        import pyarrow.parquet
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with as_source_error(path):
        file = pyarrow.parquet.ParquetFile(path)
        schema = file.schema_arrow
        _check_unique(path, schema.names)
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        features, others, nested = _sort_columns(schema, index)
        vector = _choose_vector(path, [name for name in nested if is_vector(schema.field(name).type)], part)
        if vector is not None:
            others, nested = [*features, *others], [name for name in nested if name != vector]
        elif not features:
            raise SourceError(
                f"{path} has no numeric column; its columns: {summarize_names(schema.names)}. Encode them as numbers"
            )
        table = file.read(columns=others)
        metadata = {name: _to_array(table[name]) for name in others}
        names = to_strings(metadata.pop(index[0]).tolist()) if len(index) == 1 and index[0] in metadata else None
        edges = np.cumsum([0, *(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))])
        if vector is not None:
            rows = _vector_rows(path, file, vector, edges)
            messages = [f"the rows are the vectors {vector!r} of {rows.shape[1]:,} values; other columns are not features"]
            return Source(rows, None, names, metadata, messages if metadata or nested else [])
        dtype = np.result_type(*(schema.field(name).type.to_pandas_dtype() for name in features))
        messages = [f"text columns are not features: {summarize_names(list(map(repr, metadata)))}"] if metadata else []
        messages += [f"nested columns are ignored: {summarize_names(list(map(repr, nested)))}"] if nested else []
        shape = (int(edges[-1]), len(features))
        rows = FileRows(path, BlockArray(shape, dtype, edges, _row_group_loader(path, file, features, edges, dtype=dtype)))
        return Source(rows, features, names, metadata, messages)


def is_vector(kind: Any) -> bool:
    """Whether an Arrow type is one of vectors: lists of numbers, or tensors of one shape."""
    from pyarrow import types

    if getattr(kind, "extension_name", "") == TENSOR:
        return True
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def _choose_vector(path: Path, vectors: list[str], part: str | None) -> str | None:
    if part is not None:
        if part not in vectors:
            raise SourceError(f"{path}: {unknown('column of vectors', part, vectors)}")
        return part
    if len(vectors) > 1:
        raise SourceError(
            f"{path} has several columns of vectors: {summarize_names(vectors)}; name one, as in {path.name}:{vectors[0]}"
        )
    return vectors[0] if vectors else None


def _vector_rows(path: Path, file: Any, name: str, edges: Array) -> FileRows:
    first = next(file.iter_batches(batch_size=1, columns=[name]), None)
    if first is None or not first.num_rows:
        raise SourceError(f"{path} has no rows")
    sample = _to_vectors(path, name, first.column(0), 0)

    def load(start: int, stop: int) -> Array:
        group = file.read_row_group(int(np.searchsorted(edges, start, side="right")) - 1, columns=[name])
        vectors = _to_vectors(path, name, group[name].combine_chunks(), start)
        if vectors.shape[1:] != sample.shape[1:]:
            raise _ragged(path, name, start, vectors.shape[1], sample.shape[1])
        return vectors

    return FileRows(path, BlockArray((int(edges[-1]), *sample.shape[1:]), sample.dtype, edges, load), f"vectors {name!r}")


def _to_vectors(path: Path, name: str, column: Any, start: int) -> Array:
    """The vectors of a piece of a column, (m, d) or (m, ...); ``start`` is the number of its first row."""
    import pyarrow.compute

    if column.null_count:
        row = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(f"{path}, column {name!r}, row {row} (counted from 0): missing vector; drop the row")
    if getattr(column.type, "extension_name", "") == TENSOR:
        return np.asarray(column.to_numpy_ndarray())
    lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    different = np.flatnonzero(lengths != lengths[0])
    if len(different):
        raise _ragged(path, name, start + int(different[0]), int(lengths[different[0]]), int(lengths[0]))
    values = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values).reshape(len(column), -1)


def _ragged(path: Path, name: str, row: int, found: int, wanted: int) -> SourceError:
    return SourceError(
        f"{path}, column {name!r}, row {row} (counted from 0): {found:,} values, where others have {wanted:,}; "
        "vectors must have the same length"
    )


def _check_unique(path: Path, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise SourceError(f"{path} has {count} columns {name!r}: rename all but one")


def _sort_columns(schema: Any, index: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Names of the numeric columns, of the other flat columns and of the nested ones."""
    from pyarrow import types

    features, others, nested = [], [], []
    for column in schema:
        if types.is_nested(column.type) or is_vector(column.type):
            nested.append(column.name)
        elif column.name not in index and (types.is_integer(column.type) or types.is_floating(column.type)):
            features.append(column.name)
        else:
            others.append(column.name)
    return features, others, nested


def _row_group_loader(path: Path, file: Any, features: list[str], edges: Array, *, dtype: Any) -> Callable[[int, int], Array]:
    def load(start: int, stop: int) -> Array:
        group = file.read_row_group(int(np.searchsorted(edges, start, side="right")) - 1, columns=features)
        out = np.empty((stop - start, len(features)), dtype)
        for i, name in enumerate(features):
            column = group[name]
            if column.null_count:
                row = start + int(np.flatnonzero(column.is_null().to_numpy())[0])
                remedy = "drop the row or fill the value with sklearn.impute.SimpleImputer"
                raise SourceError(f"{path}, column {name!r}, row {row} (counted from 0): missing value; {remedy}")
            out[:, i] = column.to_numpy()
        return out

    return load


def _to_array(column: Any) -> Array:
    """Numbers and complete booleans unchanged, all else as strings; missing values become NaN or empty strings."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_number = types.is_integer(column.type) or types.is_floating(column.type)
    if is_number or (types.is_boolean(column.type) and not column.null_count):
        return to_numbers_or_strings(column.to_numpy())
    return to_strings(column.to_pylist())


FORMATS = (SourceFormat((".parquet", ".pq"), _open_parquet, has_parts=True),)
