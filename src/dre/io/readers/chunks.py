"""Compressed chunks of arrays in HDF5 and zarr: none may unfold to more than its values, or than the memory.

The libraries decompress a chunk in full before they look at its size. It is checked before, when its rows are read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.hdf5_chunks import hdf5_check
from dre.io.readers.memory import ARRAY_COPIES, check_array, check_memory
from dre.io.readers.source import Array
from dre.io.readers.zarr_chunks import zarr_check
from dre.runtime import available_bytes

MOST_AT_ONCE = 1024  # strings of HDF5 that are read together, whatever their length
SMALLER = "leave it out of the file, or divide the file"


def checked_chunks(path: Path, array: Any) -> Callable[[int, int], Any]:
    """A function that reads the rows from start to stop of an array of HDF5 or zarr, once their chunks are checked."""
    check = hdf5_check(path, array) if hasattr(array, "id") else zarr_check(path, array)

    def read(start: int, stop: int) -> Any:
        check(start, stop)
        return array[start:stop] if array.ndim else array[...]

    return read


def read_whole(path: Path, array: Any, what: str = "an array", remedy: str = SMALLER) -> Array:
    """Read all of an array of HDF5 or zarr; texts in pieces, since a file can hold one long text in many places."""
    check_array(path, tuple(array.shape), array.dtype, what, remedy)
    read = checked_chunks(path, array)
    if array.dtype.kind != "O" or array.ndim != 1 or not path.is_file():
        return np.asarray(read(0, array.shape[0] if array.ndim else 1))
    available, parts, total = available_bytes(), [], 0
    step = max(MOST_AT_ONCE, (available or 2**30) // max(1, path.stat().st_size) // ARRAY_COPIES)
    for start in range(0, array.shape[0], step):
        parts.append(np.asarray(read(start, start + step)))
        total += sum(len(each) for each in parts[-1] if isinstance(each, str | bytes))
        check_memory(path, ARRAY_COPIES * total, f"the text of {what}", "shorten it, or leave it out of the file")
    return np.concatenate(parts) if parts else np.asarray(read(0, 0))
