""".npz: several arrays that numpy saved in one file, of which one is the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dre.io.readers.npy import HOW_TO_SAVE
from dre.io.readers.source import Array, Format, Source, SourceError, check_numbers, listed
from dre.io.readers.texts import plain
from dre.notation import unknown


def stored(path: Path, wanted: Callable[[Array], bool]) -> Array:
    """The array of a .npy; of a .npz the first that is wanted, or else the first."""
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.ndarray):
            return held
        with held:
            first, *others = held.files
            found: Array = held[first]
            if not wanted(found):
                found = next((each for each in map(held.get, others) if wanted(each)), found)
    except Exception as problem:  # a damaged file can cause any
        raise _unreadable(path, problem) from problem
    return found


def open_npz(path: Path, part: str | None = None) -> Source:
    """The array of that name, or the first that has columns; those with one value per row stand beside it."""
    rows, taken, beside, others = None, "", dict[str, Array](), list[str]()
    try:
        with np.load(path, allow_pickle=False) as held:
            if part is not None and part not in held.files:
                raise SourceError(f"{path}: {unknown('array', part, held.files)}")
            for name in held.files:
                found: Array = held[name]
                if name == part or (part is None and rows is None and found.ndim > 1):
                    taken, rows = name, found
                elif found.ndim == 1:
                    beside[name] = found
                else:
                    others.append(name)
    except SourceError:
        raise
    except Exception as problem:  # a damaged file can cause any
        raise _unreadable(path, problem) from problem
    if rows is None:
        known = listed([f"{name} {values.shape}" for name, values in beside.items()])
        raise SourceError(f"{path} has no array with columns; its arrays: {known}. Save the rows as an array (n, d)")
    check_numbers(path, rows.shape, rows.dtype, f"an array {taken!r}")
    metadata = {name: plain(values) for name, values in beside.items() if len(values) == len(rows)}
    told = [f"of the arrays in {path.name}, {taken!r} was taken, not {listed(others)}; {path.name}:NAME takes another"]
    return Source(rows, metadata=metadata, told=told if others and part is None else [])


def _unreadable(path: Path, problem: Exception) -> SourceError:
    return SourceError(f"{path} can't be read as an array: {problem}. {HOW_TO_SAVE}")


FORMAT = Format((".npz",), open_npz, has_parts=True)
