"""HDF5 files, and how to choose one array in a tree of groups and arrays; zarr has the same structure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.arrays import with_options
from dre.io.readers.chunks import read_whole
from dre.io.readers.file_rows import open_array
from dre.io.readers.options import ReadOptions
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

THIS_FILE = "."  # the name by which a virtual dataset calls its own file
MOST_LEVELS = 100  # of groups: finding an array takes a step for each
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


def read_metadata(path: Path, root: Any, shapes: Shapes, rows: Any) -> dict[str, Array]:
    """Read all arrays with one number or string per row."""
    names = [name for name, shape in shapes.items() if shape == tuple(rows.shape[:1])]
    arrays = {name: read_whole(path, root[name], f"the array {name!r}") for name in names}
    return {name: to_numbers_or_strings(values) for name, values in arrays.items() if values.dtype.kind in "biufSUOT"}


def open_file(path: Path, options: ReadOptions) -> Any:
    """Open an HDF5 file for reading; h5py closes it once nothing refers to it.

    Raises a `SourceError` if some of its content lies in other files, unless the options allow that.
    """
    try:
        import h5py
    except ImportError as problem:
        raise ImportError(f"{path} needs h5py: {INSTALL}") from problem
    file = h5py.File(path, "r")
    name, other = next(_external_files(file), (None, None))
    if name is not None and not options.allow_external:
        raise SourceError(
            f"{path}: {name!r} lies in another file, {other}; pass allow_external=True if you trust this file to read it"
        )
    return file


def _external_files(file: Any) -> Iterator[tuple[str, str]]:
    """Names of links and arrays whose content lies in other files, with the names of these."""
    import h5py

    links: list[tuple[str, Any]] = []

    def add_link(name: str, link: Any) -> str | None:
        links.append((name, link))
        return name if name.count("/") > MOST_LEVELS else None  # any value ends the visit

    if file.visititems_links(add_link) is not None:  # also links that lead nowhere
        raise ValueError(f"it has groups within groups, more than {MOST_LEVELS} levels")
    for name, link in links:
        if isinstance(link, h5py.ExternalLink):
            yield name, link.filename
        elif isinstance(link, h5py.HardLink) and isinstance(array := file[name], h5py.Dataset):
            stored = [each[0] for each in array.external or []]
            virtual = [each.file_name for each in array.virtual_sources()] if array.is_virtual else []
            yield from ((name, os.fsdecode(other)) for other in [*stored, *virtual] if other != THIS_FILE)


def _open_hdf5(path: Path, part: str | None, options: ReadOptions) -> Source:
    with as_source_error(path):
        file = open_file(path, options)
        shapes: Shapes = {}

        def add_shape(name: str, item: Any) -> None:
            if is_array(item) and item.shape is not None:
                shapes[name] = tuple(item.shape)

        file.visititems(add_shape)  # visits each object once, even through circular links
        name, array = select_array(path, file, shapes, part)
        rows = open_array(path, array, f"an array {name!r}")
        return with_options(path, Source(rows, metadata=read_metadata(path, file, shapes, array)), options)


FORMATS = (SourceFormat((".h5", ".hdf5"), part="array", open_with=_open_hdf5),)
