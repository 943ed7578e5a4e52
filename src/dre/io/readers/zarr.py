"""zarr folders: one array, a tree of arrays, or AnnData, read by chunks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.anndata import is_anndata, open_anndata
from dre.io.readers.arrays import with_options
from dre.io.readers.file_rows import open_array
from dre.io.readers.hdf5 import is_array, read_metadata, select_array
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import INSTALL, Source, SourceError, SourceFormat, as_source_error, check_file_kind

MARKERS = ("zarr.json", ".zgroup", ".zarray")  # files in such a folder


def _open_zarr(path: Path, part: str | None, options: ReadOptions) -> Source:
    try:
        import zarr
    except ImportError as problem:
        raise ImportError(f"{path} needs zarr 3: {INSTALL}") from problem
    with as_source_error(path):
        for marker in MARKERS:
            check_file_kind(path / marker)
        root: Any = zarr.open(path, mode="r")
        if is_array(root):
            if part is not None:
                raise SourceError(f"{path} is a single array: leave out {part!r}")
            return with_options(path, Source(open_array(path, root)), options)
        if is_anndata(root):
            return open_anndata(path, root, part, options)
        shapes = dict(_shapes(root, ""))
        name, array = select_array(path, root, shapes, part)
        rows = open_array(path, array, f"an array {name!r}")
        return with_options(path, Source(rows, metadata=read_metadata(path, root, shapes, array)), options)


def _shapes(group: Any, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, item in sorted(group.members()):
        if is_array(item):
            yield prefix + name, tuple(item.shape)
        else:
            yield from _shapes(item, f"{prefix}{name}/")


FORMATS = (SourceFormat((".zarr",), None, "array", is_folder=True, markers=MARKERS, open_with=_open_zarr),)
