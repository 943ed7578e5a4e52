"""HDF5 files, and how to choose one array in a tree of groups and arrays; zarr has the same structure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.file_rows import BlockArray, FileRows, LazyArray
from dre.io.readers.source import (
    INSTALL,
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_numbers_or_strings,
)
from dre.notation import unknown

Shapes = dict[str, tuple[int, ...]]  # of all arrays of a file, by their paths in it


def is_array(item: Any) -> bool:
    """Return whether an item of a tree is an array, not a group."""
    return hasattr(item, "shape")


def get_item(root: Any, name: str) -> Any:
    """Return the group or array of that name, or None."""
    try:
        return root[name.strip("/")] if name.strip("/") else None
    except (KeyError, ValueError):  # h5py and zarr raise either for malformed names
        return None


def select_array(path: Path, root: Any, shapes: Shapes, part: str | None) -> tuple[str, Any]:
    """Return the name and the array that ``part`` names, or the only array with columns."""
    if part is not None:
        array = get_item(root, part)
        if array is None or not is_array(array):
            raise SourceError(f"{path}: {unknown('array', part, list(shapes))}")
        return part, array
    with_columns = [name for name, shape in shapes.items() if len(shape) > 1]
    if len(with_columns) != 1:
        arrays = summarize_names([f"{name} {shape}" for name, shape in shapes.items()])
        several = f"several arrays with columns; name one, as in {path.name}:{with_columns[0]}" if with_columns else None
        raise SourceError(f"{path} has {several or 'no array with columns'}. Its arrays: {arrays}")
    return with_columns[0], root[with_columns[0]]


def read_metadata(root: Any, shapes: Shapes, rows: Any) -> dict[str, Array]:
    """Read all arrays with one number or string per row."""
    arrays = {name: np.asarray(root[name][:]) for name, shape in shapes.items() if shape == rows.shape[:1]}
    return {name: to_numbers_or_strings(values) for name, values in arrays.items() if values.dtype.kind in "biufSUOT"}


def open_file(path: Path) -> Any:
    """Open an HDF5 file for reading; h5py closes it once nothing refers to it."""
    try:
        import h5py
    except ImportError as problem:
        raise ImportError(f"{path} needs h5py: {INSTALL}") from problem
    return h5py.File(path, "r")


def by_chunks(array: Any) -> LazyArray:
    """Read a chunked array in blocks of its chunks; a contiguous one is read directly."""
    lazy: LazyArray = array if array.chunks is None else BlockArray.from_array(array, array.chunks[0])
    return lazy


def _open_hdf5(path: Path, part: str | None) -> Source:
    with as_source_error(path):
        file = open_file(path)
        shapes: Shapes = {}

        def add_shape(name: str, item: Any) -> None:
            if is_array(item) and item.shape is not None:
                shapes[name] = tuple(item.shape)

        file.visititems(add_shape)  # visits each object once, even through circular links
        name, array = select_array(path, file, shapes, part)
        rows = FileRows(path, by_chunks(array), f"an array {name!r}")
        return Source(rows, metadata=read_metadata(file, shapes, array))


FORMATS = (SourceFormat((".h5", ".hdf5"), _open_hdf5, part="array"),)
