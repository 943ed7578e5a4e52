"""Arrays that are read in blocks, which stay in memory where there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from dre.runtime import available_bytes

Array = np.ndarray[Any, Any]
CACHE_SHARE = 4  # the cache takes at most one part in four of the available memory
CACHE_BYTES = 2**28  # and no more than this: what is read more often than a few times is copied to an array


class BlockArray:
    """A lazy array that reads rows in blocks and caches them.

    A batch takes rows from all over a file, and most formats decode a block to read one of its rows. The second
    read of a block puts it into the cache, which only grows until it is full. Repeated passes over a file then always find
    the same blocks there; evicting the oldest would miss every time. A single pass caches nothing.

    Parameters
    ----------
    shape, dtype
        Those of the array.
    edges : array of shape (n_blocks + 1,)
        Rows at which the blocks start and end.
    load : callable
        ``load(start, stop)`` reads one block, dense or CSR.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, edges: Array, load: Callable[[int, int], Any]) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.edges, self._load = edges, load
        available = available_bytes()
        self._free_bytes = CACHE_BYTES if available is None else min(CACHE_BYTES, available // CACHE_SHARE)
        self._cache: dict[int, Any] = {}
        self._seen: set[int] = set()
        self._latest: tuple[int, Any] = (-1, None)  # consecutive reads often meet in one block

    def __getitem__(self, which: slice | Array) -> Any:
        """Read a slice, or rows by increasing ids."""
        parts = list(self._range(*which.indices(self.shape[0])) if isinstance(which, slice) else self._rows(which))
        if not parts:
            return np.empty((0, *self.shape[1:]), self.dtype)
        if len(parts) == 1:
            return parts[0].copy() if isinstance(which, slice) else parts[0]  # a slice is a view of the block
        return scipy.sparse.vstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.concatenate(parts)

    def _range(self, start: int, stop: int, step: int) -> Iterator[Any]:
        """Yield consecutive rows by block, as views of them."""
        if step != 1:
            yield from self._rows(np.arange(start, stop, step))
            return
        while start < stop:
            block = int(np.searchsorted(self.edges, start, side="right")) - 1
            first, last = int(self.edges[block]), min(stop, int(self.edges[block + 1]))
            yield self._block(block)[start - first : last - first]
            start = last

    def _rows(self, ids: Array) -> Iterator[Any]:
        if not len(ids):
            return
        blocks = np.searchsorted(self.edges, ids, side="right") - 1
        starts = np.flatnonzero(np.diff(blocks, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(ids)], strict=True):
            block = int(blocks[start])
            yield self._block(block)[ids[start:stop] - self.edges[block]]

    def _block(self, i: int) -> Any:
        if i in self._cache:
            return self._cache[i]
        latest, content = self._latest
        if i != latest:
            self._latest = (-1, None)  # two blocks at a time would take twice the memory
            del content
            content = self._load(int(self.edges[i]), int(self.edges[i + 1]))
            self._latest = (i, content)
            size = content.data.nbytes + content.indices.nbytes if scipy.sparse.issparse(content) else content.nbytes
            if i in self._seen and size <= self._free_bytes:
                self._free_bytes -= size
                self._cache[i] = content
            self._seen.add(i)
        return content
