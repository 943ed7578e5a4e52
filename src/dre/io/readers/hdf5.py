""".h5 and .hdf5: an array by its name, or the only one that has columns, read piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dre.io.readers.array_tree import beside, chosen, is_array
from dre.io.readers.blocks import Blocks
from dre.io.readers.file_rows import FileRows, Held
from dre.io.readers.source import INSTALL, Format, Source, reading


def opened(path: Path) -> Any:
    """The file, which h5py closes when nobody has it any more."""
    try:
        import h5py
    except ImportError as problem:
        raise ImportError(f"{path} needs h5py: {INSTALL}") from problem
    return h5py.File(path, "r")


def pieces(array: Any) -> Held:
    """By rows where they lie one after the other, and else by the chunks in which they are stored."""
    held: Held = array if array.chunks is None else Blocks.of(array, array.chunks[0])
    return held


def open_hdf5(path: Path, part: str | None = None) -> Source:
    with reading(path):
        file = opened(path)
        arrays: dict[str, tuple[int, ...]] = {}

        def look(name: str, item: Any) -> None:
            if is_array(item) and item.shape is not None:
                arrays[name] = tuple(item.shape)

        file.visititems(look)  # each once, whatever links there are
        name, array = chosen(path, file, arrays, part)
        rows = FileRows(path, pieces(array), f"an array {name!r}")
        return Source(rows, metadata=beside(file, arrays, array))


FORMAT = Format((".h5", ".hdf5"), open_hdf5, has_parts=True)
