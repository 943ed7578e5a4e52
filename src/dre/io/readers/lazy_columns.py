"""Columns of large files that are read when they are asked for: metadata by name, and names of rows in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class LazyColumns(Mapping[str, Array]):
    """Columns by name; each is read when it is asked for the first time.

    >>> columns = LazyColumns(["a", "b"], lambda name: np.array([name]))
    >>> list(columns), columns["b"]
    (['a', 'b'], array(['b'], dtype='<U1'))
    """

    def __init__(self, names: Sequence[str], load: Callable[[str], Array]) -> None:
        self._names, self._load = dict.fromkeys(names), load
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def change_columns(columns: Mapping[str, Array], change: Callable[[Array], Array]) -> Mapping[str, Array]:
    """Return changed columns; those that are not read yet are changed when they are."""
    if isinstance(columns, LazyColumns):
        return LazyColumns(list(columns), lambda name: change(columns[name]))
    return {name: change(values) for name, values in columns.items()}


def merge_columns(*several: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the columns of all, side by side; of the same name, the last one."""
    owners = {name: columns for columns in several for name in columns}
    lazy = LazyColumns(list(owners), lambda name: owners[name][name])
    return lazy if any(isinstance(each, LazyColumns) for each in several) else dict(lazy)


def join_columns(parts: Sequence[Mapping[str, Array]]) -> Mapping[str, Array]:
    """Return the columns that all parts have, one part after the other."""
    shared = [name for name in parts[0] if all(name in each for each in parts)]
    lazy = LazyColumns(shared, lambda name: np.concatenate([np.asarray(each[name]) for each in parts]))
    return lazy if any(isinstance(each, LazyColumns) for each in parts) else dict(lazy)


class LazyNames:
    """Names of rows, as an array of strings that is read in pieces by slices, and as a whole by anything else.

    >>> names = LazyNames(4, lambda start, stop: np.arange(start, stop).astype(str))
    >>> names[1:3].tolist(), len(names), names.tolist()
    (['1', '2'], 4, ['0', '1', '2', '3'])
    """

    dtype = np.dtype(str)

    def __init__(self, length: int, read: Callable[[int, int], Array]) -> None:
        self.shape = (length,)
        self._read = read

    @classmethod
    def joined(cls, parts: Sequence[Array | LazyNames]) -> LazyNames:
        """Names of several files, one after the other."""
        starts = np.cumsum([0, *map(len, parts)])

        def read(start: int, stop: int) -> Array:
            ends = [(max(start, a) - a, min(stop, b) - a) for a, b in pairwise(starts.tolist())]
            return np.concatenate([part[a:b] for part, (a, b) in zip(parts, ends, strict=True) if a < b] or [np.empty(0, str)])

        return cls(int(starts[-1]), read)

    @cached_property
    def _all(self) -> Array:
        return self._read(0, len(self))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice) and "_all" not in vars(self):
            start, stop, step = which.indices(len(self))
            if step == 1:
                return self._read(start, max(start, stop))
        return self._all[which]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self._all, dtype)

    def tolist(self) -> list[str]:
        """All names."""
        names: list[str] = self._all.tolist()
        return names


def join_names(names: Sequence[Any]) -> Any:
    """Names of several files as one array; lazily if those of a file are."""
    return LazyNames.joined(names) if any(isinstance(each, LazyNames) for each in names) else np.concatenate(names)
