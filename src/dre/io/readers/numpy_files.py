"""Arrays that numpy saved: .npy is memory-mapped, .npz holds several arrays by name."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dre.io.readers.file_rows import FileRows
from dre.io.readers.memory import check_array
from dre.io.readers.source import (
    Array,
    Source,
    SourceError,
    SourceFormat,
    check_numeric,
    summarize_names,
    to_numbers_or_strings,
)
from dre.notation import unknown

READ_HEADER = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
PLAIN_ARRAYS = (  # the remedy for pickled objects, which could run code
    "Save numbers with numpy.save(path, X) and strings with numpy.save(path, labels.astype(str)); pickled objects are not read."
)
AS_NPY = "save it as .npy, which is read in pieces"


@dataclass(frozen=True)
class ArrayHeader:
    """What a file says about an array, before the array is read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The size of its values; of Python's integers, which do not overflow."""
        return math.prod(self.shape) * self.dtype.itemsize


def load_array(path: Path, is_wanted: Callable[[tuple[int, ...]], bool]) -> Array:
    """Load the array of a .npy file, or the first of a .npz file whose shape is wanted, else its first array."""
    with _as_array_error(path):
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                _check(path, _read_header(file), "an array")
            return np.asarray(np.load(path, allow_pickle=False))
        with np.load(path, allow_pickle=False) as stored:
            headers = _headers(path)
            name = next((name for name, header in headers.items() if is_wanted(header.shape)), next(iter(headers), None))
            if name is None:
                raise SourceError(f"{path} holds no array: save the labels with numpy.savez(path, labels)")
            _check(path, headers[name], f"the array {name!r}")
            return np.asarray(stored[name])


def _open_npy(path: Path, part: str | None) -> Source:
    with _as_array_error(path):
        with path.open("rb") as file:
            header = _read_header(file)
            size = file.tell() + header.nbytes
        _check_objects(header, "the array")
        check_numeric(path, header.shape, header.dtype)
        if path.stat().st_size < size:
            raise ValueError(f"it has {path.stat().st_size:,} bytes, where the shape {header.shape} needs {size:,}")
        return Source(FileRows(path, np.lib.format.open_memmap(path, mode="r")))


def _open_npz(path: Path, part: str | None) -> Source:
    """Take the named array, or the first with columns; arrays with one value per row become metadata."""
    with _as_array_error(path), np.load(path, allow_pickle=False) as stored:
        headers = _headers(path)
        if part is not None and part not in headers:
            raise SourceError(f"{path}: {unknown('array', part, list(headers))}")
        taken = part or next((name for name, header in headers.items() if len(header.shape) > 1), None)
        if taken is None:
            arrays = summarize_names([f"{name} {header.shape}" for name, header in headers.items()])
            raise SourceError(f"{path} has no array with columns; its arrays: {arrays}. Save the rows as an array (n, d)")
        header = headers[taken]
        check_numeric(path, header.shape, header.dtype, f"an array {taken!r}")
        vectors = [name for name, each in headers.items() if each.shape == header.shape[:1] and name != taken]
        for name in (taken, *vectors):
            _check(path, headers[name], f"the array {name!r}")
        metadata = {name: to_numbers_or_strings(stored[name]) for name in vectors}
        others = [name for name, each in headers.items() if len(each.shape) != 1 and name != taken]
        message = f"{path.name}: using the array {taken!r}, not {summarize_names(others)}; choose one with {path.name}:NAME"
        return Source(stored[taken], metadata=metadata, messages=[message] if others and part is None else [])


def _headers(path: Path) -> dict[str, ArrayHeader]:
    """What all arrays of a .npz file are, by name; only the beginning of each is decompressed."""
    headers = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                headers[member.filename.removesuffix(".npy")] = _read_header(file)  # type: ignore[arg-type]
    return headers


def _read_header(file: BinaryIO) -> ArrayHeader:
    version = np.lib.format.read_magic(file)
    if version not in READ_HEADER:
        version = (2, 0)  # 3.0 differs in the encoding of names of fields, which no array of numbers has
    shape, _, dtype = READ_HEADER[version](file)
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"the shape {shape} is none")
    return ArrayHeader(shape, dtype)


def _check_objects(header: ArrayHeader, what: str) -> None:
    if header.dtype.hasobject:
        raise ValueError(f"{what} holds objects")


def _check(path: Path, header: ArrayHeader, what: str) -> None:
    _check_objects(header, what)
    check_array(path, header.shape, header.dtype, what, AS_NPY)


@contextmanager
def _as_array_error(path: Path) -> Iterator[None]:
    try:
        yield
    except SourceError:
        raise
    except Exception as problem:  # a damaged file can raise any error
        remedy = PLAIN_ARRAYS if "objects" in str(problem) else "If the file is damaged, download or write it again."
        raise SourceError(f"{path} cannot be read as an array: {problem}. {remedy}") from problem


FORMATS = (SourceFormat((".npy",), _open_npy), SourceFormat((".npz",), _open_npz, part="array"))
