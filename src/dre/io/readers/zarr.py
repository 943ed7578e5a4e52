""".zarr: an array, a tree of them, or AnnData, in a folder of chunks that are read when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.anndata import is_anndata, open_anndata
from dre.io.readers.array_tree import beside, chosen, is_array
from dre.io.readers.blocks import Blocks
from dre.io.readers.file_rows import FileRows
from dre.io.readers.source import INSTALL, Format, Source, SourceError, reading


def pieces(array: Any) -> Blocks:
    """By the chunks in which they are stored."""
    return Blocks.of(array, array.chunks[0])


def open_zarr(path: Path, part: str | None = None) -> Source:
    try:
        import zarr
    except ImportError as problem:
        raise ImportError(f"{path} needs zarr 3: {INSTALL}") from problem
    with reading(path):
        root: Any = zarr.open(path, mode="r")
        if is_array(root):
            if part is not None:
                raise SourceError(f"{path} is one array, and has no part {part!r}: leave it out")
            return Source(FileRows(path, _some_rows(root)))
        if is_anndata(root):
            return open_anndata(path, root, part, pieces)
        arrays = dict(_arrays(root, ""))
        name, array = chosen(path, root, arrays, part)
        rows = FileRows(path, _some_rows(array), f"an array {name!r}")
        return Source(rows, metadata=beside(root, arrays, array))


def _some_rows(array: Any) -> Any:
    """One without columns has no chunks of rows: it is refused by its shape."""
    return pieces(array) if array.ndim > 1 else array


def _arrays(group: Any, above: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, item in sorted(group.members()):
        if is_array(item):
            yield above + name, tuple(item.shape)
        else:
            yield from _arrays(item, f"{above}{name}/")


FORMAT = Format((".zarr",), open_zarr, has_parts=True, is_folder=True, marks=("zarr.json", ".zgroup", ".zarray"))
