"""Parquet: a column of vectors, or the columns that can be features; large files are read in blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.block_array import BlockArray
from dre.data.rows import RowSlice
from dre.io.readers.arrays import without_gaps
from dre.io.readers.arrow import to_frame
from dre.io.readers.features import DROPPED, choice_messages, choose, fill_message, mixed_units
from dre.io.readers.file_rows import FileRows
from dre.io.readers.frames import choose_vector, open_frame, table_of, vector_error, vector_source
from dre.io.readers.lazy_columns import LazyColumns, LazyNames
from dre.io.readers.memory import CELL_BYTES, check_memory, check_rows
from dre.io.readers.options import ReadOptions
from dre.io.readers.row_groups import REMEDY, ColumnSizes, RowGroups, column_places, group_edges, open_file
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
SMALL_BYTES = 2**26  # columns beside the rows are read at once up to this size
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
        if vector is not None:
            return _open_vectors(path, file, vector, flat, options)
        if not flat:
            raise SourceError(f"{path} has no column of numbers; its columns: {summarize_names(schema.names)}")
        if _fits(file, flat, options):
            source = open_frame(path, _frame(path, file, flat), None, options, index)
        else:
            source = _open_large(path, file, flat, options)
        nested = [name for name in schema.names if _is_nested(schema.field(name).type)]
        ignored = [f"nested columns are ignored: {summarize_names(nested)}"] if nested and not options.features else []
        return replace(source, messages=[*source.messages, *ignored])


def _verified(path: Path) -> Any:
    """Open a file whose pages are compared with their checksums; texts that unfold to much more stay in dictionaries."""
    file, available = open_file(path), available_bytes()
    folded = set()
    for column in _column_chunks(file):
        if column.physical_type == TEXT_TYPE and column.num_values * column.total_uncompressed_size > (available or HELD_BYTES):
            folded.add(column.path_in_schema)
    return open_file(path, read_dictionary=sorted(folded)) if folded else file


def _column_chunks(file: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """What the file says about the columns of its row groups."""
    places = column_places(file, columns)
    for i in range(file.num_row_groups):
        group = file.metadata.row_group(i)
        yield from map(group.column, places)


def _read(path: Path, file: Any, columns: list[str], groups: Sequence[int] | None = None) -> Any:
    """Read columns of some row groups, or of all, if what they declare fits into memory; a table of Arrow."""
    chosen, sizes = range(file.num_row_groups) if groups is None else groups, ColumnSizes(file, columns)
    rows, size = sum(file.metadata.row_group(i).num_rows for i in chosen), sum(sizes[i] for i in chosen)
    what = f"{rows:,} rows of {summarize_names(columns, 3)}"
    check_memory(path, max(size, CELL_BYTES * rows * len(columns)), what, REMEDY)
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


def _fits(file: Any, flat: list[str], options: ReadOptions) -> bool:
    """Whether a table is held in memory; a model that reads its columns of numbers holds no more than a small one."""
    most = min(_held_bytes(), SMALL_BYTES) if options.features and _are_numbers(file, options.features) else _held_bytes()
    return bool(8 * file.metadata.num_rows * len(flat) <= most)


def _are_numbers(file: Any, names: Sequence[str]) -> bool:
    from pyarrow import types

    schema = file.schema_arrow
    kinds = [schema.field(name).type for name in names if name in schema.names]
    return len(kinds) == len(names) and all(types.is_integer(each) or types.is_floating(each) for each in kinds)


def _held_bytes() -> int:
    available = available_bytes()
    return HELD_BYTES if available is None else available // HELD_SHARE


def _frame(path: Path, file: Any, columns: list[str]) -> Any:
    return to_frame(path, _read(path, file, columns))


def _table(path: Path, file: Any, columns: list[str], index: str | None) -> Table:
    names = None if index is None else to_strings(_frame(path, file, [index])[index].to_list())
    return table_of(path, _frame(path, file, columns), names)


def _first_rows(path: Path, file: Any, columns: list[str], index: str | None = None) -> Table:
    """The first row groups of a large table: its columns tell what they are for."""
    wanted = [*columns, *([] if index is None else [index])]
    frame = to_frame(
        path, _head(path, file, wanted, min(EXAMINED, max(1, _held_bytes() // (CELL_BYTES * max(1, len(wanted))))))
    )
    return table_of(path, frame.select(columns), None if index is None else to_strings(frame[index].to_list()))


def _head(path: Path, file: Any, columns: list[str], rows: int) -> Any:
    """Read the first rows, or all if there are fewer; a table of Arrow."""
    import pyarrow

    sizes, edges = ColumnSizes(file, columns), group_edges(file)
    groups = range(int(np.searchsorted(edges, min(rows, int(edges[-1])))))
    check_memory(path, sum(sizes[i] for i in groups), f"the first {rows:,} rows of {summarize_names(columns, 3)}", REMEDY)
    parts, count = [], 0
    for batch in file.iter_batches(rows, row_groups=list(groups), columns=columns):
        parts.append(batch.slice(0, rows - count))
        count += len(parts[-1])
        if count == rows:
            break
    return pyarrow.Table.from_batches(parts)


def _lazy_metadata(path: Path, columns: list[str]) -> LazyColumns:
    """Columns that are read when they are asked for; no file stays open for them."""

    def load(name: str) -> Array:
        with as_source_error(path):
            return table_of(path, _frame(path, _verified(path), [name])).columns[0].as_metadata()

    return LazyColumns(columns, load)


def _lazy_names(path: Path, file: Any, column: str) -> Any:
    """Names of the rows, read by row group."""
    edges = group_edges(file)

    def load(start: int, stop: int) -> Array:
        again = _verified(path)
        frame = to_frame(path, _read(path, again, [column], [int(np.searchsorted(edges, start, side="right")) - 1]))
        return to_strings(table_of(path, frame).columns[0].as_metadata().tolist())

    blocks = BlockArray((int(edges[-1]),), str, edges, load)
    return LazyNames(int(edges[-1]), lambda start, stop: blocks[start:stop])


def _open_vectors(path: Path, file: Any, vector: str, flat: list[str], options: ReadOptions) -> Source:
    """Take a column of vectors as the rows. Of a large file, the other columns are read when they are asked for."""
    index = _index(file.schema_arrow)
    rows, others = _vector_rows(path, file, vector), [name for name in flat if name != index]
    sizes = ColumnSizes(file, flat)
    if sum(sizes[i] for i in range(file.num_row_groups)) <= SMALL_BYTES:
        return vector_source(_table(path, file, others, index), vector, rows, options)
    first = _first_rows(path, file, others, index)
    found = vector_source(first, vector, RowSlice(rows, 0, len(first)), options)
    title = found.names_title if found.names_title in others else index
    return replace(
        found,
        rows=rows,
        names=None if found.names is None or title is None else _lazy_names(path, file, title),
        metadata=_lazy_metadata(path, list(found.metadata)),
    )


def _open_large(path: Path, file: Any, flat: list[str], options: ReadOptions) -> Source:
    """Choose the features by the first rows, and read them by row group; all other columns when they are asked for."""
    index = _index(file.schema_arrow)
    first = _first_rows(path, file, flat)
    chosen = choose(first, options)
    features = list(options.features) or chosen.features
    if not set(features) <= set(flat) or any(first[name].kind == TEXT for name in chosen.features):
        raise SourceError(f"{path} is too large to encode its categories: write them as columns of numbers")
    others = [name for name, reason in chosen.reasons.items() if reason != DROPPED and name not in (index, chosen.names)]
    title = chosen.names or index
    fill = _middles(path, features, options)
    dtype = _common_dtype(file, features)
    blocks = RowGroups(path, file, features, len(features))
    array = BlockArray(
        (int(blocks.edges[-1]), len(features)), dtype, blocks.edges, _feature_loader(blocks, features, dtype, fill)
    )
    source = Source(
        FileRows(path, array, edges=blocks.groups),
        features,
        None if title is None else _lazy_names(path, file, title),
        _lazy_metadata(path, others),
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


def _vector_rows(path: Path, file: Any, name: str) -> FileRows:
    first = next(file.iter_batches(batch_size=1, columns=[name]))
    sample = _to_vectors(path, name, first.column(0), 0)
    blocks = RowGroups(path, file, [name], math.prod(sample.shape[1:]))

    def load(start: int, stop: int) -> Array:
        vectors = _to_vectors(path, name, blocks.read(start, stop)[name].combine_chunks(), start)
        if vectors.shape[1:] != sample.shape[1:]:
            raise vector_error(path, name, start, vectors.shape[1], [sample.shape[1]])
        return vectors

    array = BlockArray((int(blocks.edges[-1]), *sample.shape[1:]), sample.dtype, blocks.edges, load)
    return FileRows(path, array, f"vectors {name!r}", blocks.groups)


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


def _feature_loader(
    blocks: RowGroups, features: list[str], dtype: Any, fill: Mapping[str, float]
) -> Callable[[int, int], Array]:
    def load(start: int, stop: int) -> Array:
        block = blocks.read(start, stop)
        out = np.empty((stop - start, len(features)), dtype)
        for i, name in enumerate(features):
            column = block[name].to_numpy()  # integers with gaps become floats with NaN
            gaps = ~np.isfinite(column)
            if gaps.any() and name in fill:
                column = np.where(gaps, fill[name], column)
            out[:, i] = column
        return out

    return load


FORMATS = (SourceFormat((".parquet", ".pq"), part="vector", open_with=_open_parquet),)
