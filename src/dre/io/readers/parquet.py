"""Parquet: a column of vectors, or the columns that can be features; large files are read by row group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.block_array import BlockArray
from dre.io.readers.arrays import without_gaps
from dre.io.readers.arrow import to_frame
from dre.io.readers.features import DROPPED, choice_messages, choose, fill_message, mixed_units
from dre.io.readers.file_rows import FileRows
from dre.io.readers.frames import choose_vector, open_frame, table_of, vector_error, vector_source
from dre.io.readers.memory import CELL_BYTES, check_memory, check_rows
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import (
    INSTALL,
    Array,
    EmptySourceError,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_strings,
)
from dre.io.readers.table import TEXT, Table
from dre.runtime import available_bytes

TEXT_TYPE = "BYTE_ARRAY"
TENSOR = "arrow.fixed_shape_tensor"  # name of the Arrow extension
HELD_SHARE = 8  # a table is held in memory if it takes at most one part in eight of what is available
HELD_BYTES = 2**30  # where the available memory is unknown
EXAMINED = 100_000  # rows of a larger table that tell which columns are features


def _open_parquet(path: Path, part: str | None, options: ReadOptions) -> Source:
    """Take a column of vectors as the rows, or else the features; the index that pandas wrote names the rows."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as problem:
        raise ImportError(f"{path} needs pyarrow: {INSTALL}") from problem
    with as_source_error(path):
        file = _verified(path)
        schema = file.schema_arrow
        _check_unique(path, schema.names)
        if not file.metadata.num_rows:
            raise EmptySourceError(f"{path} has no rows")
        flat = [column.name for column in schema if not _is_nested(column.type)]
        vector = choose_vector(path, [name for name in schema.names if is_vector(schema.field(name).type)], part)
        index = _index(schema)
        check_rows(path, (file.metadata.num_rows, 1), np.dtype(np.float64), "a table")
        edges = np.cumsum([0, *(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))])
        if vector is not None:
            table = _table(path, file, [name for name in flat if name != index], index)
            return vector_source(table, vector, _vector_rows(path, file, vector, edges), options)
        if not flat:
            raise SourceError(f"{path} has no column of numbers; its columns: {summarize_names(schema.names)}")
        if _fits(file, flat):
            source = open_frame(path, _frame(path, file, flat), None, options, index)
        else:
            source = _open_large(path, file, flat, edges, options)
        nested = [name for name in schema.names if _is_nested(schema.field(name).type)]
        ignored = [f"nested columns are ignored: {summarize_names(nested)}"] if nested and not options.features else []
        return replace(source, messages=[*source.messages, *ignored])


def _verified(path: Path) -> Any:
    """Open a file whose pages are compared with their checksums; texts that unfold to much more stay in dictionaries."""
    from pyarrow.parquet import ParquetFile

    file, available = ParquetFile(path, page_checksum_verification=True), available_bytes()
    folded = set()
    for column in _column_chunks(file):
        if column.physical_type == TEXT_TYPE and column.num_values * column.total_uncompressed_size > (available or HELD_BYTES):
            folded.add(column.path_in_schema)
    return ParquetFile(path, page_checksum_verification=True, read_dictionary=sorted(folded)) if folded else file


def _column_chunks(file: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """What the file says about the columns of its row groups."""
    places = _places(file, columns)
    for i in range(file.num_row_groups):
        group = file.metadata.row_group(i)
        yield from map(group.column, places)


def _places(file: Any, columns: Sequence[str] | None = None) -> list[int]:
    """Places of some columns, or of all, in every row group; those of vectors are called ``name.list.element``."""
    schema = file.metadata.schema
    if columns is None:
        return list(range(len(schema)))
    paths, wanted = [schema.column(j).path for j in range(len(schema))], set(columns)
    return [j for j, each in enumerate(paths) if each in wanted or each.partition(".")[0] in wanted]


class ColumnSizes:
    """Bytes that some columns of a row group declare to take; the description of a group is read once."""

    def __init__(self, file: Any, columns: Sequence[str]) -> None:
        self._file, self._places, self._known = file, _places(file, columns), dict[int, int]()

    def __getitem__(self, group: int) -> int:
        if group not in self._known:
            chunks = map(self._file.metadata.row_group(group).column, self._places)
            self._known[group] = sum(max(CELL_BYTES * each.num_values, each.total_uncompressed_size) for each in chunks)
        return self._known[group]


def _read(
    path: Path, file: Any, columns: list[str], groups: Sequence[int] | None = None, sizes: ColumnSizes | None = None
) -> Any:
    """Read columns of some row groups, or of all, if what they declare fits into memory; a table of Arrow."""
    chosen, sizes = range(file.num_row_groups) if groups is None else groups, sizes or ColumnSizes(file, columns)
    rows, size = sum(file.metadata.row_group(i).num_rows for i in chosen), sum(sizes[i] for i in chosen)
    what = f"{rows:,} rows of {summarize_names(columns, 3)}"
    remedy = "write the file with smaller row groups, or fewer columns"
    check_memory(path, max(size, CELL_BYTES * rows * len(columns)), what, remedy)
    table = file.read(columns=columns) if groups is None else file.read_row_groups(list(groups), columns=columns)
    if table.num_rows != rows:
        raise SourceError(f"{path} is damaged: it has {table.num_rows:,} rows where it declares {rows:,}; write it again")
    return table


def is_vector(kind: Any) -> bool:
    """Whether an Arrow type is one of vectors: lists of numbers, or tensors of one shape."""
    from pyarrow import types

    if getattr(kind, "extension_name", "") == TENSOR:
        return True
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def _is_nested(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_nested(kind) or is_vector(kind))


def _index(schema: Any) -> str | None:
    """The one column that pandas wrote as the index; a range or an index of several levels names no rows."""
    columns = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    return columns[0] if len(columns) == 1 and columns[0] in schema.names else None


def _fits(file: Any, flat: list[str]) -> bool:
    return bool(8 * file.metadata.num_rows * len(flat) <= _held_bytes())


def _held_bytes() -> int:
    available = available_bytes()
    return HELD_BYTES if available is None else available // HELD_SHARE


def _frame(path: Path, file: Any, columns: list[str]) -> Any:
    return to_frame(path, _read(path, file, columns))


def _table(path: Path, file: Any, columns: list[str], index: str | None) -> Table:
    names = None if index is None else to_strings(_frame(path, file, [index])[index].to_list())
    return table_of(path, _frame(path, file, columns), names)


def _open_large(path: Path, file: Any, flat: list[str], edges: Array, options: ReadOptions) -> Source:
    """Choose the features by the first rows, read them by row group, and hold all other columns."""
    index, examined = _index(file.schema_arrow), min(EXAMINED, _held_bytes() // (CELL_BYTES * len(flat)))
    groups = max(1, int(np.searchsorted(edges, examined, side="right")) - 1)
    first = table_of(path, to_frame(path, _read(path, file, flat, range(min(groups, file.num_row_groups)))))
    chosen = choose(first, options)
    features = list(options.features) or chosen.features
    if not set(features) <= set(flat) or any(first[name].kind == TEXT for name in chosen.features):
        raise SourceError(f"{path} is too large to encode its categories: write them as columns of numbers")
    others = [name for name, reason in chosen.reasons.items() if reason != DROPPED and name != index]
    table = _table(path, file, others, index)
    metadata = {each.name: each.as_metadata() for each in table.columns}
    names = table.names if chosen.names is None else to_strings(metadata.pop(chosen.names).tolist())
    fill = _middles(path, features, options)
    dtype = _common_dtype(file, features)
    load = _row_group_loader(path, file, features, edges, dtype=dtype, fill=fill)
    source = Source(
        FileRows(path, BlockArray((int(edges[-1]), len(features)), dtype, edges, load)),
        features,
        names,
        metadata,
        [] if options.features else [*choice_messages(first, chosen), *fill_message(fill)],
        chosen.names or Source.names_title,
        fill,
        mixed_units=mixed_units(features, np.column_stack([first[name].values for name in features])),
    )
    unfilled = [name for name in features if name not in fill]
    kept = _complete_rows(path, unfilled) if options.missing == "drop" and unfilled else None
    return source if kept is None or kept.all() else without_gaps(path, source, kept)


def _common_dtype(file: Any, features: list[str]) -> Any:
    """The type that holds the values of all features, and NaN if one of them may have gaps."""
    schema = file.schema_arrow  # made anew whenever it is asked for
    dtype = np.result_type(*{schema.field(name).type.to_pandas_dtype() for name in features})
    return dtype if dtype.kind == "f" or _is_known_complete(file, set(features)) else np.dtype(np.float64)


def _is_known_complete(file: Any, features: set[str]) -> bool:
    """Whether the statistics of the file exclude missing values of these columns."""
    known = (column.statistics for column in _column_chunks(file, sorted(features)))
    return all(each is not None and each.has_null_count and not each.null_count for each in known)


def _middles(path: Path, features: list[str], options: ReadOptions) -> dict[str, float]:
    """Means or medians of the columns, beside those of an earlier table."""
    import polars as pl

    known = dict(options.fill)
    if options.missing not in ("mean", "median") or all(name in known for name in features):
        return known
    columns = pl.scan_parquet(path).select(pl.col(name).fill_nan(None) for name in features if name not in known)
    middles = columns.select(pl.all().mean() if options.missing == "mean" else pl.all().median())
    return {**known, **middles.collect().row(0, named=True)}


def _complete_rows(path: Path, features: list[str]) -> Array:
    """Whether each row has the values of all these features, (n,)."""
    import polars as pl

    wanted = [pl.col(name).cast(pl.Float64).is_finite().fill_null(False) for name in features]
    complete = pl.scan_parquet(path).select(pl.all_horizontal(wanted).alias("complete")).collect()
    return np.asarray(complete["complete"].to_numpy())


def _vector_rows(path: Path, file: Any, name: str, edges: Array) -> FileRows:
    first = next(file.iter_batches(batch_size=1, columns=[name]))
    sample = _to_vectors(path, name, first.column(0), 0)

    sizes = ColumnSizes(file, [name])

    def load(start: int, stop: int) -> Array:
        group = _read(path, file, [name], [int(np.searchsorted(edges, start, side="right")) - 1], sizes)
        vectors = _to_vectors(path, name, group[name].combine_chunks(), start)
        if vectors.shape[1:] != sample.shape[1:]:
            raise vector_error(path, name, start, vectors.shape[1], [sample.shape[1]])
        return vectors

    return FileRows(path, BlockArray((int(edges[-1]), *sample.shape[1:]), sample.dtype, edges, load), f"vectors {name!r}")


def _to_vectors(path: Path, name: str, column: Any, start: int) -> Array:
    """The vectors of a piece of a column, (m, d) or (m, ...); ``start`` is the number of its first row."""
    import pyarrow.compute

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise vector_error(path, name, start + row, None, [])
    if getattr(column.type, "extension_name", "") == TENSOR:
        return np.asarray(column.to_numpy_ndarray())
    lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    different = np.flatnonzero(lengths != lengths[0])
    if len(different):
        raise vector_error(path, name, start + int(different[0]), int(lengths[different[0]]), [int(lengths[0])])
    values = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values).reshape(len(column), -1)


def _check_unique(path: Path, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise SourceError(f"{path} has {count} columns {name!r}: rename all but one")


def _row_group_loader(
    path: Path, file: Any, features: list[str], edges: Array, *, dtype: Any, fill: Mapping[str, float]
) -> Callable[[int, int], Array]:
    sizes = ColumnSizes(file, features)

    def load(start: int, stop: int) -> Array:
        group = _read(path, file, features, [int(np.searchsorted(edges, start, side="right")) - 1], sizes)
        out = np.empty((stop - start, len(features)), dtype)
        for i, name in enumerate(features):
            column = group[name].to_numpy()  # integers with gaps become floats with NaN
            gaps = ~np.isfinite(column)
            if gaps.any() and name in fill:
                column = np.where(gaps, fill[name], column)
            out[:, i] = column
        return out

    return load


FORMATS = (SourceFormat((".parquet", ".pq"), part="vector", open_with=_open_parquet),)
