"""Tables of Arrow as DataFrames of polars, if they fit into memory once unfolded, and their columns of vectors as arrays.

Arrow can store a billion equal values, or one long text for a million rows, in a small file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.frames import check_lengths, vector_error, with_missing_rows
from dre.io.readers.memory import CELL_BYTES, STRING_BYTES, check_memory
from dre.io.readers.source import Array

FEWER = "choose fewer columns or rows, and save them in a file of their own"
TENSOR = "arrow.fixed_shape_tensor"  # name of the Arrow extension


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


def is_vector(kind: Any) -> bool:
    """Whether an Arrow type is one of vectors: lists of numbers, or tensors of one shape."""
    from pyarrow import types

    if getattr(kind, "extension_name", "") == TENSOR:
        return True
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def is_nested(kind: Any) -> bool:
    """Whether an Arrow type holds others: lists, structs, tensors."""
    from pyarrow import types

    return bool(types.is_nested(kind) or is_vector(kind))


def to_vectors(path: Path, name: str, column: Any, start: int, *, shape: tuple[int, ...] | None = None) -> Array:
    """The vectors of a piece of a column, (m, d) or (m, ...); ``start`` is the number of its first row.

    If their ``shape`` is given, vectors may be missing: they are NaN.
    """
    import pyarrow.compute

    present = column.is_valid().to_numpy(zero_copy_only=False)
    if shape is None and not present.all():
        raise vector_error(path, name, start + int(present.argmin()))
    valid = column if present.all() else column.drop_null()
    if shape is not None and not len(valid):
        return np.full((len(column), *shape), np.nan)
    if getattr(column.type, "extension_name", "") == TENSOR:
        vectors = np.asarray(valid.to_numpy_ndarray())
    else:
        lengths = pyarrow.compute.list_value_length(valid).to_numpy(zero_copy_only=False)
        check_lengths(path, name, lengths, start + np.flatnonzero(present))
        vectors = np.asarray(valid.flatten().to_numpy(zero_copy_only=False)).reshape(len(valid), -1)
    return vectors if present.all() else with_missing_rows(vectors, present)
