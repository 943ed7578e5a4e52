"""Arrays that numpy saved: .npy is memory-mapped, .npz holds several arrays by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dre.io.readers.file_rows import FileRows
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


def load_array(path: Path, is_wanted: Callable[[Array], bool]) -> Array:
    """Load the array of a .npy file, or the first wanted array of a .npz file, else its first array."""
    try:
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return stored
        with stored:
            first, *others = stored.files
            array: Array = stored[first]
            if not is_wanted(array):
                array = next((each for each in map(stored.get, others) if is_wanted(each)), array)
    except Exception as problem:  # a damaged file can raise any error
        raise _unreadable(path, problem) from problem
    return array


def _open_npy(path: Path, part: str | None) -> Source:
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except Exception as problem:  # a damaged file can raise any error
        raise _unreadable(path, problem) from problem
    return Source(FileRows(path, mapped))


def _open_npz(path: Path, part: str | None) -> Source:
    """Take the named array, or the first with columns; arrays with one value per row become metadata."""
    rows, taken, vectors, others = None, "", dict[str, Array](), list[str]()
    try:
        with np.load(path, allow_pickle=False) as stored:
            if part is not None and part not in stored.files:
                raise SourceError(f"{path}: {unknown('array', part, stored.files)}")
            for name in stored.files:
                array: Array = stored[name]
                if name == part or (part is None and rows is None and array.ndim > 1):
                    taken, rows = name, array
                elif array.ndim == 1:
                    vectors[name] = array
                else:
                    others.append(name)
    except SourceError:
        raise
    except Exception as problem:  # a damaged file can raise any error
        raise _unreadable(path, problem) from problem
    if rows is None:
        arrays = summarize_names([f"{name} {values.shape}" for name, values in vectors.items()])
        raise SourceError(f"{path} has no array with columns; its arrays: {arrays}. Save the rows as an array (n, d)")
    check_numeric(path, rows.shape, rows.dtype, f"an array {taken!r}")
    metadata = {name: to_numbers_or_strings(values) for name, values in vectors.items() if len(values) == len(rows)}
    message = f"{path.name}: using the array {taken!r}, not {summarize_names(others)}; choose one with {path.name}:NAME"
    return Source(rows, metadata=metadata, messages=[message] if others and part is None else [])


def _unreadable(path: Path, problem: Exception) -> SourceError:
    return SourceError(
        f"{path} cannot be read as an array: {problem}. Save numbers with numpy.save(path, X) and strings with "
        "numpy.save(path, labels.astype(str)); pickled objects are not read"
    )


FORMATS = (SourceFormat((".npy",), _open_npy), SourceFormat((".npz",), _open_npz, part="array"))
