"""Rows read from a file or a dataset, with their names and metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.table_preparation import TablePreparation
from dre.data.units import DominantColumns
from dre.io.readers.lazy_columns import LazyColumns

Array = np.ndarray[Any, Any]
INSTALL = "pip install 'deep-recursive-embedding[files]'"
MAX_NAMES = 20  # names that an error lists
RUST_PANIC = "PanicException"  # of polars, which is no Exception
MAX_FIXED_WIDTH = 256  # characters: a numpy string array pads every value to the longest

SPECIAL_KINDS: dict[str, Callable[[Path], bool]] = {
    "a pipe": Path.is_fifo,
    "a socket": Path.is_socket,
    "a device": lambda path: path.is_char_device() or path.is_block_device(),
}


class SourceError(ValueError):
    """A file or dataset that cannot be read; the message names it and the remedy."""


class EmptySourceError(SourceError):
    """A file without rows."""


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """Which rows of a file are not among those of a source, since they lack values.

    Parameters
    ----------
    kept : array of shape (m,) of bool
        Whether each row of the file is there.
    names : array of shape (m,), default=None
        Names of all rows of the file.
    """

    kept: Array
    names: Array | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """Rows to fit or to embed, with everything else that their file holds.

    Parameters
    ----------
    rows : array of shape (n, d) or (n, h, w[, c]), CSR matrix, or Rows
        `dre.data.rows.Rows`, read in pieces, if the file is large.
    columns : list of str, default=None
        Names of the d columns.
    names : array of shape (n,), default=None
        Names of the rows.
    metadata : mapping of arrays of shape (n,), default=empty dict
        Values per row that are not features, such as labels. Those of large files are read when they are asked for.
    messages : list of str, default=empty list
        Notes for the user about how the file was read.
    names_title : str, default="name"
        Name of the column that names the rows.
    fill : dict of str to float, default=empty dict
        What was filled in for missing values, by column.
    dropped : DroppedRows, default=None
        Which rows of the file are not here, since they lack values.
    mixed_units : DominantColumns, default=None
        The columns of a table that outweigh all others, if the columns seem to have different units.
    cautions : list of str, default=empty list
        Conditions under which a model's map of these rows is meaningful.
    aside : Source, default=None
        Another matrix of the same rows, with names of columns, such as the genes behind principal components.
    filled : dict of arrays of shape (n,) of bool, default=empty dict
        Which values of a column were missing and are filled in.
    preparation : TablePreparation, default=None
        What has made the rows of a table with categories. ``columns`` then names its results, and the columns of the table are
        among the metadata.

    Examples
    --------
    >>> source = Source(np.eye(3), metadata={"kind": np.array(["a", "b", "b"])})
    >>> source.rows.shape, list(source.metadata)
    ((3, 3), ['kind'])
    """

    rows: Any
    columns: list[str] | None = None
    names: Array | None = None
    metadata: Mapping[str, Array] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    names_title: str = "name"
    fill: dict[str, float] = field(default_factory=dict)
    dropped: DroppedRows | None = None
    mixed_units: DominantColumns | None = None
    cautions: list[str] = field(default_factory=list)
    aside: Source | None = None
    filled: dict[str, Array] = field(default_factory=dict)
    preparation: TablePreparation | None = None

    def __post_init__(self) -> None:
        known = {} if isinstance(self.metadata, LazyColumns) else self.metadata
        per_row = known if self.names is None else {"row names": self.names, **known}
        for name, values in per_row.items():
            if len(values) != self.rows.shape[0]:
                raise ValueError(f"{name}: {len(values)} values for {self.rows.shape[0]} rows; expected one per row")

    @property
    def file_length(self) -> int:
        """Number of rows of the file, also of those that lack values."""
        return int(self.rows.shape[0]) if self.dropped is None else len(self.dropped.kept)

    @property
    def file_rows(self) -> Array:
        """Position of each row in the file, counted from 0."""
        return np.arange(self.file_length) if self.dropped is None else np.flatnonzero(self.dropped.kept)


@dataclass(frozen=True)
class SourceFormat:
    """A file format: its suffixes and the function that opens it.

    Parameters
    ----------
    suffixes : tuple of str
        In lower case, with the dot.
    open : callable, default=None
        Maps a path and a part, or None, to a `Source`.
    part : str, default=""
        What a part of such a file is: an array, a vector column, or a size in pixels. Empty if it has none.
    is_folder : bool, default=False
        Whether the format can be a folder.
    markers : tuple of str, default=()
        File names that identify such a folder, whatever its suffix.
    open_with : callable, default=None
        In place of ``open`` for a format that follows `dre.io.readers.options.ReadOptions` itself, its third argument.
    """

    suffixes: tuple[str, ...]
    open: Callable[[Path, str | None], Source] | None = None
    part: str = ""
    is_folder: bool = False
    markers: tuple[str, ...] = ()
    open_with: Callable[[Path, str | None, Any], Source] | None = None


def match_suffix(name: str, suffixes: Iterable[str]) -> str | None:
    """Return the longest of the suffixes that a file name ends in, or None.

    >>> match_suffix("cells.CSV.gz", [".gz", ".csv.gz", ".npy"])
    '.csv.gz'
    """
    return max((suffix for suffix in suffixes if name.lower().endswith(suffix)), key=len, default=None)


DOWNLOAD = "If the file is damaged, download or write it again."


@contextmanager
def as_source_error(path: Path, remedy: str = DOWNLOAD) -> Iterator[None]:
    """Re-raise any error of a damaged file as a `SourceError` that names the file and the remedy."""
    try:
        yield
    except (SourceError, ImportError):
        raise
    except MemoryError as problem:
        raise SourceError(f"{path} takes more memory than is available: choose a part of it, or divide the file") from problem
    except BaseException as problem:  # libraries raise all kinds, even SyntaxError for a PNG
        if not isinstance(problem, Exception) and type(problem).__name__ != RUST_PANIC:
            raise
        reason = next((line.strip(" .") for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
        raise SourceError(f"{path} cannot be read: {reason}.\n{remedy}") from problem


def file_state(path: Path) -> tuple[int, ...] | None:
    """Return what tells that a file was written again: its size, time and number; None for a folder."""
    found = path.stat()
    return (found.st_size, found.st_mtime_ns, found.st_ino) if path.is_file() else None


@contextmanager
def unchanged(path: Path, state: tuple[int, ...] | None) -> Iterator[None]:
    """Raise a `SourceError` if a file has changed since it was opened, before and after reading a part of it.

    Before: a part that was cut off from a mapped file would end the process. After: what was decoded is of two files.
    """
    _check_state(path, state)
    try:
        yield
    finally:
        _check_state(path, state)


def _check_state(path: Path, state: tuple[int, ...] | None) -> None:
    try:
        changed = file_state(path) != state
    except OSError as problem:
        raise SourceError(f"{path} was open and is gone ({problem.strerror}): put it back, and start again") from problem
    if changed:
        raise SourceError(f"{path} has changed since it was opened: start again once it is complete")


def check_file_kind(path: Path) -> None:
    """Raise a `SourceError` for a pipe, a socket or a device: they may never end, and can't be read twice."""
    kind = next((kind for kind, holds in SPECIAL_KINDS.items() if holds(path)), None)
    if kind is not None:
        raise SourceError(f"{path} is {kind}, not a file: save its content to a file, and pass that")


def summarize_names(names: list[str], most: int = MAX_NAMES) -> str:
    """Join names for a message; a long list is cut and its length added.

    >>> summarize_names(["a", "b"]), summarize_names(["a", "b", "c"], 2)
    ('a, b', 'a, b, … (3 in total)')
    """
    more = f", … ({len(names):,} in total)" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "none"


def check_numeric(path: Path, shape: tuple[int, ...], dtype: Any, what: str = "an array") -> None:
    """Raise a `SourceError` unless an array has columns and real numbers, before any of it is read."""
    if len(shape) < 2 or 0 in shape:
        raise SourceError(f"{path} holds {what} of shape {tuple(shape)}: expected rows with columns, (n, d)")
    if dtype.kind not in "biuf":
        raise SourceError(f"{path} holds {what} of dtype {dtype}, not real numbers: convert or encode it first")


def to_strings(values: Iterable[Any]) -> Array:
    """Convert values to an array of str; bytes are decoded as UTF-8 and missing values become empty.

    Arrays with long strings have dtype object, since numpy pads strings to the longest.

    >>> to_strings([b"B cell", "NK", None]).tolist()
    ['B cell', 'NK', '']
    """
    strings = [_to_string(value) for value in values]
    return np.array(strings, dtype=str if max(map(len, strings), default=0) <= MAX_FIXED_WIDTH else object)


def _to_string(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def to_numbers_or_strings(values: Any) -> Array:
    """Return numbers and booleans unchanged, and all else as strings."""
    array = np.asarray(values)
    return array if array.dtype.kind in "biuf" else to_strings(array.tolist())
