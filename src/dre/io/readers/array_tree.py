"""The array that is meant in a file that is a tree of them: the one that was named, or the only one with columns.

Such trees are HDF5 and zarr files; both have groups, which are asked for by name, and arrays, which have a shape.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.source import Array, SourceError, listed
from dre.io.readers.texts import plain
from dre.notation import unknown


def is_array(item: Any) -> bool:
    return hasattr(item, "shape")


def beside(root: Any, arrays: dict[str, tuple[int, ...]], rows: Any) -> dict[str, Array]:
    """The arrays with one value per row, by their names, as far as they are numbers or texts."""
    named = [name for name, shape in arrays.items() if shape == rows.shape[:1]]
    values = {name: np.asarray(root[name][:]) for name in named}
    return {name: plain(each) for name, each in values.items() if each.dtype.kind in "biufSUOT"}


def found(root: Any, name: str) -> Any:
    """What has that name, or None."""
    try:
        return root[name.strip("/")] if name.strip("/") else None
    except (KeyError, ValueError):  # h5py and zarr, of names that can't be
        return None


def chosen(path: Path, root: Any, arrays: dict[str, tuple[int, ...]], part: str | None) -> tuple[str, Any]:
    """The name and the array; ``arrays`` are all that there are, with their shapes."""
    if part is not None:
        array = found(root, part)
        if array is None or not is_array(array):
            raise SourceError(f"{path}: {unknown('array', part, list(arrays))}")
        return part, array
    with_columns = [name for name, shape in arrays.items() if len(shape) > 1]
    if len(with_columns) != 1:
        known = listed([f"{name} {shape}" for name, shape in arrays.items()])
        several = f"several arrays with columns; name one, as in {path.name}:{with_columns[0]}" if with_columns else None
        raise SourceError(f"{path} has {several or 'no array with columns'}. Its arrays: {known}")
    return with_columns[0], root[with_columns[0]]
