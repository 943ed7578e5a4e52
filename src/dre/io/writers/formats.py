"""Formats of written embeddings: .npy, .csv, .tsv, .parquet, and .h5ad beside the cells."""

from __future__ import annotations

import csv
import errno
import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from dre.io.formulas import defuse
from dre.io.readers.source import INSTALL, Array

FLOAT32_DIGITS = 9  # significant decimals that restore any float32 exactly
OBSM_KEY = "X_dre"  # scanpy plots it with basis="X_dre"
H5AD_OVERHEAD = 2**16  # bytes of HDF5's own that a new array needs at most


@dataclass(frozen=True, eq=False)
class OutputSpec:
    """Shape and names of the embedding to write.

    Parameters
    ----------
    rows, components : int
        Its shape.
    names : array of shape (rows,), default=None
        Names of the rows.
    source : Path, default=None
        File that the rows come from; .h5ad output is a copy of it.
    columns : tuple of str, default=None
        Names of the columns; None names them ``dre1``, ``dre2``, ….
    names_title : str, default="name"
        Name of the column of the names.
    kept : array of shape (rows,) of bool, default=None
        Which rows are going to be written; the others are NaN. None: all.

    Examples
    --------
    >>> OutputSpec(100, 2).column_names
    ['dre1', 'dre2']
    """

    rows: int
    components: int
    names: Array | None = None
    source: Path | None = None
    columns: tuple[str, ...] | None = None
    names_title: str = "name"
    kept: Array | None = None

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, also if none were passed."""
        return list(self.columns or (f"dre{i}" for i in range(1, self.components + 1)))


class Sink(Protocol):
    """Takes an embedding in pieces and writes it to a file."""

    def write(self, embedding: Array) -> None:
        """Write the next rows, float32 of shape (m, components)."""


class GapSink:
    """A sink that writes NaN in place of the rows that are not kept."""

    def __init__(self, sink: Sink, kept: Array, components: int) -> None:
        self._sink, self._kept, self._places = sink, kept, np.flatnonzero(kept)
        self._components, self._written, self._position = components, 0, 0

    def write(self, embedding: Array) -> None:
        """Write the next rows that are kept, and the gaps before each of them."""
        if len(embedding):
            self._written += len(embedding)
            self._write_up_to(int(self._places[self._written - 1]) + 1, embedding)

    def close(self) -> None:
        """Write the gaps at the end."""
        self._write_up_to(len(self._kept), np.empty((0, self._components), np.float32))

    def _write_up_to(self, stop: int, embedding: Array) -> None:
        block = np.full((stop - self._position, self._components), np.nan, np.float32)
        block[self._kept[self._position : stop]] = embedding
        self._sink.write(block)
        self._position = stop


@dataclass(frozen=True)
class SinkFormat:
    """A file format: its suffixes, in lower case with the dot, and a function that opens a `Sink`."""

    suffixes: tuple[str, ...]
    open: Callable[[Path, OutputSpec], AbstractContextManager[Sink]]


class BytesSink:
    """A sink that writes the values of rows to an open file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, embedding: Array) -> None:
        """Write the next rows."""
        self._file.write(np.ascontiguousarray(embedding, np.float32).data)


class ArraySink:
    """A sink that fills an array on disk from its first row on."""

    def __init__(self, array: Any) -> None:
        self._array, self._position = array, 0

    def write(self, embedding: Array) -> None:
        """Write the next rows."""
        self._array[self._position : self._position + len(embedding)] = embedding
        self._position += len(embedding)


@contextmanager
def _open_npy(path: Path, spec: OutputSpec) -> Iterator[Sink]:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)), "fortran_order": False}
    with path.open("wb") as file:  # on a full disk, writing to a memory map would end the process
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (spec.rows, spec.components)})
        yield BytesSink(file)


def _reserve(path: Path, count: int) -> None:
    """Claim disk space at the end of a file: HDF5 fails only when it closes a file, and then leaves it open."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), path.stat().st_size, count)
            except OSError as problem:
                if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # of file systems that can't
                    raise


@contextmanager
def _open_h5ad(path: Path, spec: OutputSpec) -> Iterator[Sink]:
    """Copy the file of the cells and write the embedding to its ``obsm``."""
    if spec.source is None or spec.source.suffix.lower() != ".h5ad":
        raise ValueError(f"{path.name}: .h5ad output needs an .h5ad file of cells as input; write .npy, .csv or .parquet")
    try:
        import h5py
    except ImportError as problem:
        raise ImportError(f"{path.name} needs h5py: {INSTALL}") from problem
    shutil.copyfile(spec.source, path)
    _reserve(path, 4 * spec.rows * spec.components + H5AD_OVERHEAD)
    with h5py.File(path, "r+") as file:
        if not isinstance(file.get("obsm", h5py.HardLink(), getlink=True), h5py.HardLink):
            raise ValueError(f"{spec.source}: obsm is a link, through which another file could be changed; write .npy or .csv")
        obsm = file.require_group("obsm")
        if OBSM_KEY in obsm:
            del obsm[OBSM_KEY]
        array = obsm.create_dataset(OBSM_KEY, (spec.rows, spec.components), np.float32)
        array.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        yield ArraySink(array)


def _cell(text: str) -> str:
    """A text as a cell; Python before 3.13 puts no quotes around a carriage return, which would end the line."""
    return defuse(text.replace("\r\n", "\n").replace("\r", "\n"))


class DelimitedSink:
    """A sink that writes lines of text to an open file; no text is a formula to a spreadsheet."""

    def __init__(self, file: Any, spec: OutputSpec, delimiter: str) -> None:
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._names, self._position = spec.names, 0
        # pandas and R write row names into a column without a name
        title = "" if spec.names_title == OutputSpec.names_title else spec.names_title
        header = [*([title] if self._names is not None else []), *spec.column_names]
        self._writer.writerow([_cell(name) for name in header])

    def write(self, embedding: Array) -> None:
        """Write the next rows."""
        records = [[f"{value:.{FLOAT32_DIGITS}g}" for value in row] for row in embedding.tolist()]
        if self._names is not None:
            names = self._names[self._position : self._position + len(embedding)]
            records = [[_cell(str(name)), *record] for name, record in zip(names, records, strict=True)]
        self._position += len(embedding)
        self._writer.writerows(records)


@contextmanager
def _open_delimited(path: Path, spec: OutputSpec) -> Iterator[Sink]:
    name = path.name.lower()
    open_text = gzip.open if name.endswith(".gz") else open
    with open_text(path, "wt", encoding="utf-8", newline="") as file:
        yield DelimitedSink(file, spec, "\t" if ".tsv" in name else ",")


class _ParquetSink:
    def __init__(self, writer: Any, schema: Any, spec: OutputSpec) -> None:
        self._writer, self._schema, self._names, self._position = writer, schema, spec.names, 0

    def write(self, embedding: Array) -> None:
        import pyarrow

        columns: list[Any] = list(embedding.T)
        if self._names is not None:
            names = self._names[self._position : self._position + len(embedding)]
            columns.insert(0, names if names.dtype.kind == "i" else [str(name) for name in names])
        self._position += len(embedding)
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))


@contextmanager
def _open_parquet(path: Path, spec: OutputSpec) -> Iterator[Sink]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as problem:
        raise ImportError(f"{path.name} needs pyarrow: {INSTALL}") from problem
    names = []
    if spec.names is not None:  # numbers of rows stay numbers
        names = [(spec.names_title, pyarrow.int64() if spec.names.dtype.kind == "i" else pyarrow.string())]
    schema = pyarrow.schema([*names, *((column, pyarrow.float32()) for column in spec.column_names)])
    with ParquetWriter(path, schema, write_page_checksum=True) as writer:
        yield _ParquetSink(writer, schema, spec)


_ALL = (
    SinkFormat((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _open_delimited),
    SinkFormat((".h5ad",), _open_h5ad),
    SinkFormat((".npy",), _open_npy),
    SinkFormat((".parquet",), _open_parquet),
)
FORMATS = {suffix: each for each in _ALL for suffix in each.suffixes}
