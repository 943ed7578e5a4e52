"""Arrays that are read in blocks, which stay in memory where there is room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from dre.runtime import available_bytes

Array = np.ndarray[Any, Any]
CACHE_SHARE = 4  # the cache takes at most one part in four of the available memory
CACHE_BYTES = 2**29  # and no more than this: what is read more often than a few times is copied to an array


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
        ids = np.arange(*which.indices(self.shape[0])) if isinstance(which, slice) else which
        if not len(ids):
            return np.empty((0, *self.shape[1:]), self.dtype)
        blocks = np.searchsorted(self.edges, ids, side="right") - 1
        starts = np.flatnonzero(np.diff(blocks, prepend=-1))
        parts = []
        for start, stop in zip(starts, [*starts[1:], len(ids)], strict=True):
            block = int(blocks[start])
            local, content = ids[start:stop] - self.edges[block], self._block(block)
            parts.append(content if len(local) == content.shape[0] else content[local])
        if scipy.sparse.issparse(parts[0]):
            return scipy.sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def _block(self, i: int) -> Any:
        if i in self._cache:
            return self._cache[i]
        if i != self._latest[0]:
            content = self._load(int(self.edges[i]), int(self.edges[i + 1]))
            self._latest = (i, content)
            size = content.data.nbytes + content.indices.nbytes if scipy.sparse.issparse(content) else content.nbytes
            if i in self._seen and size <= self._free_bytes:
                self._free_bytes -= size
                self._cache[i] = content
            self._seen.add(i)
        return self._latest[1]
