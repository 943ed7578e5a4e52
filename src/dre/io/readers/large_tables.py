"""Tables and vectors of files that are read in blocks: features by the first rows, other columns when they are asked for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dre.data.block_array import BlockArray
from dre.data.rows import RowSlice
from dre.data.table_preparation import TablePreparation
from dre.io.readers.arrays import handle_missing, without_gaps
from dre.io.readers.arrow_frames import to_frame, to_vectors
from dre.io.readers.features import DROPPED, Chosen, choice_messages, choose, features_of, fill_message, mixed_units
from dre.io.readers.file_rows import FileRows
from dre.io.readers.frames import no_vector, table_of, vector_error, vector_source
from dre.io.readers.lazy_columns import LazyColumns, LazyNames
from dre.io.readers.memory import CELL_BYTES
from dre.io.readers.mixed import column_values, filling, prepare
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, Source, SourceError, as_source_error, file_state, to_strings, unchanged
from dre.io.readers.table import NUMBER, Table
from dre.runtime import available_bytes

HELD_SHARE = 8  # a table is held in memory if it takes at most one part in eight of what is available
HELD_BYTES = 2**30  # where the available memory is unknown
SMALL_BYTES = 2**26  # columns beside the rows are read at once up to this size
EXAMINED_VECTORS = 1_000  # first rows that are searched for a vector, where some are missing
EXAMINED = 100_000  # rows of a larger table that tell which columns are features
BLOCK_VALUES = 2**23  # values of a block, at most
NAMES_AT_ONCE = 2**17
OPEN_NAMES = 8  # files whose names are being read


class Blocks(Protocol):
    """Columns of a file, read in blocks."""

    edges: Array  # rows at which blocks begin and end
    groups: Array  # rows at which parts of the file begin and end that are decoded together

    def read(self, start: int, stop: int) -> Any:
        """Read a block; a table of Arrow."""


class LargeTable(Protocol):
    """An open file with a table, of which columns are read in blocks."""

    path: Path
    schema: Any  # of Arrow

    def __len__(self) -> int: ...

    def head(self, columns: list[str], rows: int) -> Any:
        """Read the first rows, or all if there are fewer; a table of Arrow."""

    def read(self, columns: list[str]) -> Any:
        """Read columns as a whole; a table of Arrow."""

    def blocks(self, columns: list[str], width: int, values: int = BLOCK_VALUES) -> Blocks:
        """Columns with so many values in a row, in blocks of at most so many values."""

    @classmethod
    def open(cls, path: Path) -> LargeTable:
        """Open a file."""

    def scan(self) -> Any:
        """A lazy frame of polars."""

    def is_complete(self, columns: list[str]) -> bool:
        """Whether the file says that no value of these columns is missing."""


def fits(table: LargeTable, flat: list[str], options: ReadOptions) -> bool:
    """Whether a table is held in memory; a model that reads its columns of numbers holds no more than a small one."""
    most = held_bytes()
    if options.features and _are_numbers(table.schema, options.features):
        most = min(most, SMALL_BYTES)
    return bool(8 * len(table) * len(flat) <= most)


def _are_numbers(schema: Any, names: Sequence[str]) -> bool:
    from pyarrow import types

    kinds = [schema.field(name).type for name in names if name in schema.names]
    return len(kinds) == len(names) and all(types.is_integer(each) or types.is_floating(each) for each in kinds)


def held_bytes() -> int:
    """Size of a table that is held in memory, at most."""
    available = available_bytes()
    return HELD_BYTES if available is None else available // HELD_SHARE


def _first_rows(table: LargeTable, columns: list[str], index: str | None = None) -> Table:
    """The first rows of a large table: its columns tell what they are for."""
    wanted = [*columns, *([] if index is None else [index])]
    rows = min(EXAMINED, max(1, held_bytes() // (CELL_BYTES * max(1, len(wanted)))))
    frame = to_frame(table.path, table.head(wanted, rows))
    return table_of(table.path, frame.select(columns), None if index is None else to_strings(frame[index].to_list()))


def _lazy_metadata(table: LargeTable, columns: list[str]) -> LazyColumns:
    """Columns that are read when they are asked for; no file stays open for them."""
    path, kind, state = table.path, type(table), file_state(table.path)

    def load(name: str) -> Array:
        with unchanged(path, state), as_source_error(path):
            return table_of(path, to_frame(path, kind.open(path).read([name]))).columns[0].as_metadata()

    return LazyColumns(columns, load)


def _lazy_names(table: LargeTable, column: str) -> Any:
    """Names of the rows, read in blocks."""
    path, kind, n, state = table.path, type(table), len(table), file_state(table.path)

    def load(start: int, stop: int) -> Array:
        with unchanged(path, state), as_source_error(path):
            frame = to_frame(path, _names(kind, path, state, column).read(start, stop))
            return table_of(path, frame).columns[0].as_names()

    blocks = BlockArray((n,), str, table.blocks([column], 1, NAMES_AT_ONCE).edges, load)
    return LazyNames(n, lambda start, stop: blocks[start:stop])


@lru_cache(OPEN_NAMES)
def _names(kind: type[LargeTable], path: Path, state: tuple[int, ...] | None, column: str) -> Blocks:
    """Open a file for its names; of many shards, few are open at a time."""
    return kind.open(path).blocks([column], 1, NAMES_AT_ONCE)


def open_large_vectors(table: LargeTable, vector: str, others: list[str], options: ReadOptions, index: str | None) -> Source:
    """Take a column of vectors as the rows. The other columns are read when they are asked for."""
    rows, first = vector_rows(table, vector, options), _first_rows(table, others, index)
    found = vector_source(first, vector, RowSlice(rows, 0, len(first)) if len(first) else rows, options)
    title = found.names_title if found.names_title in others else index
    names = None if found.names is None or title is None else _lazy_names(table, title)
    source = replace(found, rows=rows, names=names, metadata=_lazy_metadata(table, list(found.metadata)))
    return handle_missing(table.path, source, options)


def open_large_table(table: LargeTable, flat: list[str], options: ReadOptions, index: str | None) -> Source:
    """Choose the features by the first rows, and read them in blocks; all other columns when they are asked for."""
    path, first = table.path, _first_rows(table, flat)
    chosen = choose(first, options)
    features = list(options.features) or chosen.features
    if options.preparation is not None:
        return _open_mixed(table, first, chosen, options, index)
    if options.features:
        features_of(first, features, options)  # names a feature that is missing, or has no numbers
    is_mixed = not options.features and any(first[name].kind != NUMBER for name in chosen.features)
    if is_mixed or not set(features) <= set(flat):
        raise SourceError(f"{path} is too large to encode its categories: fit a part of its rows, and embed all")
    others = [name for name, reason in chosen.reasons.items() if reason != DROPPED and name not in (index, chosen.names)]
    title, fill = chosen.names or index, _middles(table, features, options)
    source = Source(
        _feature_rows(table, features, fill),
        features,
        None if title is None else _lazy_names(table, title),
        _lazy_metadata(table, others),
        [] if options.features else [*choice_messages(first, chosen), *fill_message(fill)],
        chosen.names or Source.names_title,
        fill,
        mixed_units=mixed_units(features, np.column_stack([first[name].values for name in features])),
    )
    unfilled = [name for name in features if name not in fill]
    kept = _complete_rows(table, unfilled) if options.missing == "drop" and unfilled else None
    return source if kept is None or kept.all() else without_gaps(path, source, kept)


def _open_mixed(table: LargeTable, first: Table, chosen: Chosen, options: ReadOptions, index: str | None) -> Source:
    """Read the columns of a model with categories in blocks, and prepare each."""
    preparation = options.preparation
    assert preparation is not None
    names = preparation.columns or []
    examined = prepare(first, preparation, options, allow_gaps=True)  # names a column that is missing, or of another kind
    preparation, own = _filled(table, preparation, options)
    beside = [name for name, reason in chosen.reasons.items() if reason != DROPPED and name not in (index, chosen.names)]
    title, blocks = chosen.names or index, table.blocks(names, max(len(names), len(preparation.names_out)))
    told = set(examined.unknown)  # columns whose unknown values the user hears of once
    where = f"rows 1 to {len(first):,}: " if len(first) < len(table) else ""

    def load(start: int, stop: int, *, allow_gaps: bool = options.missing == "drop") -> Array:
        part = table_of(table.path, to_frame(table.path, blocks.read(start, stop)))
        here = replace(part, place=lambda row, column: f"row {start + row + 1} of column {column!r}")
        found = prepare(here, preparation, options, allow_gaps=allow_gaps)
        for name, note in zip(found.unknown, found.unknown_notes, strict=True):
            if name not in told:
                told.add(name)
                warnings.warn(f"rows {start + 1:,} to {stop:,}: {note}", stacklevel=2)
        return found.rows

    array = BlockArray((len(table), len(preparation.names_out)), np.dtype(np.float64), blocks.edges, load)
    source = Source(
        FileRows(table.path, array, edges=blocks.groups),
        preparation.names_out,
        None if title is None else _lazy_names(table, title),
        _lazy_metadata(table, [*beside, *names]),
        names_title=chosen.names or Source.names_title,
        cautions=[*(where + note for note in examined.unknown_notes), *own],
        preparation=preparation,
    )
    if options.missing != "drop":
        return source
    kept = np.concatenate([~np.isnan(load(start, stop)).any(1) for start, stop in pairwise(blocks.edges.tolist())])
    return source if kept.all() else without_gaps(table.path, source, kept)


def _filled(table: LargeTable, known: TablePreparation, options: ReadOptions) -> tuple[TablePreparation, list[str]]:
    """The preparation with fills of the whole table, where it has none and they are asked for; and a line about it."""

    def column(name: str) -> Array:
        return column_values(table_of(table.path, to_frame(table.path, table.read([name]))), name, known)

    try:
        return filling(known, column, options)
    except SourceError:
        raise
    except ValueError as problem:
        raise SourceError(f"{table.path}: {problem}") from None


def _feature_rows(table: LargeTable, features: list[str], fill: Mapping[str, float]) -> FileRows:
    dtype, blocks = _common_dtype(table, features), table.blocks(features, len(features))

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

    array = BlockArray((len(table), len(features)), dtype, blocks.edges, load)
    return FileRows(table.path, array, edges=blocks.groups)


def _common_dtype(table: LargeTable, features: list[str]) -> Any:
    """The type that holds the values of all features, and NaN if one of them may have gaps."""
    schema = table.schema
    dtype = np.result_type(*{schema.field(name).type.to_pandas_dtype() for name in features})
    return dtype if dtype.kind == "f" or table.is_complete(features) else np.dtype(np.float64)


def _middles(table: LargeTable, features: list[str], options: ReadOptions) -> dict[str, float]:
    """Means or medians of the columns, beside those of an earlier table."""
    import polars as pl

    known = dict(options.fill)
    if options.missing not in ("mean", "median") or all(name in known for name in features):
        return known
    columns = table.scan().select(pl.col(name).fill_nan(None) for name in features if name not in known)
    middles = columns.select(pl.all().mean() if options.missing == "mean" else pl.all().median())
    return {**known, **middles.collect().row(0, named=True)}


def _complete_rows(table: LargeTable, features: list[str]) -> Array:
    """Whether each row has the values of all these features, (n,)."""
    import polars as pl

    wanted = [pl.col(name).cast(pl.Float64).is_finite().fill_null(False) for name in features]
    complete = table.scan().select(pl.all_horizontal(wanted).alias("complete")).collect()
    return np.asarray(complete["complete"].to_numpy())


def vector_rows(table: LargeTable, name: str, options: ReadOptions) -> FileRows:
    """Rows that are the vectors of a column, decoded straight into arrays; a missing one is NaN if rows may lack values."""
    path, may_lack = table.path, options.allows_gaps and not table.is_complete([name])
    first = table.head([name], EXAMINED_VECTORS if may_lack else 1)[name].combine_chunks()
    if may_lack:
        first = first.drop_null()
        if not len(first):
            raise no_vector(path, name, f"none of the first {min(len(table), EXAMINED_VECTORS):,} rows")
    sample = to_vectors(path, name, first.slice(0, 1), 0)
    if may_lack and sample.dtype.kind != "f":
        sample = sample.astype(np.float64)
    blocks, shape = table.blocks([name], math.prod(sample.shape[1:])), sample.shape[1:] if may_lack else None

    def load(start: int, stop: int) -> Array:
        vectors = to_vectors(path, name, blocks.read(start, stop)[name].combine_chunks(), start, shape=shape)
        if vectors.shape[1:] != sample.shape[1:]:
            raise vector_error(path, name, start, vectors.shape[1], sample.shape[1])
        return vectors

    array = BlockArray((len(table), *sample.shape[1:]), sample.dtype, blocks.edges, load)
    return FileRows(path, array, f"vectors {name!r}", blocks.groups)
