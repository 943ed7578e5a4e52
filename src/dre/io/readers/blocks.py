"""An array in a file that is only read in blocks of rows; those that memory has room for are kept.

A batch takes rows from all over a file, and most formats must decode a whole block for one row of it. Blocks that are read a
second time are kept until there is no more room, and none gives way to another: of a file that is gone through again and again,
such a part is always there, where the latest would always be the wrong ones. Of one that is gone through once, none is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from dre.data.rows import chunk_length
from dre.io.readers.source import Array
from dre.runtime import available_bytes

SHARE = 4  # at most this part of the memory that is available is kept
UNKNOWN = 2**30  # bytes, where the system does not say how much is available
LEAST_VALUES = 2**16  # of a block: smaller ones cost more to ask for than to read


class Blocks:
    """Blocks of rows that begin and end at ``edges``, (blocks + 1,); ``load(start, stop)`` reads one, dense or CSR."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, edges: Array, load: Callable[[int, int], Any]) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._edges, self._load = edges, load
        available = available_bytes()
        self._room = UNKNOWN if available is None else available // SHARE
        self._kept: dict[int, Any] = {}
        self._seen: set[int] = set()
        self._latest: tuple[int, Any] = (-1, None)  # what follows is often in the same block

    @classmethod
    def of(cls, array: Any, rows_a_block: int) -> Blocks:
        """Over an array that gives slices, in blocks of about so many rows."""
        shape = tuple(int(size) for size in array.shape)
        step = min(max(rows_a_block, chunk_length(shape[1:], LEAST_VALUES)), chunk_length(shape[1:]))
        edges = np.append(np.arange(0, shape[0], step), shape[0])
        return cls(shape, array.dtype, edges, lambda start, stop: array[start:stop])

    def __getitem__(self, which: slice | Array) -> Any:
        """A slice, or rows by their ids, which must increase."""
        ids = np.arange(*which.indices(self.shape[0])) if isinstance(which, slice) else which
        if not len(ids):
            return np.empty((0, *self.shape[1:]), self.dtype)
        blocks = np.searchsorted(self._edges, ids, side="right") - 1
        begins = np.flatnonzero(np.diff(blocks, prepend=-1))
        parts = []
        for begin, end in zip(begins, [*begins[1:], len(ids)], strict=True):
            block = int(blocks[begin])
            wanted, content = ids[begin:end] - self._edges[block], self._block(block)
            parts.append(content if len(wanted) == content.shape[0] else content[wanted])
        if scipy.sparse.issparse(parts[0]):
            return scipy.sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def _block(self, i: int) -> Any:
        if i in self._kept:
            return self._kept[i]
        if i != self._latest[0]:
            content = self._load(int(self._edges[i]), int(self._edges[i + 1]))
            self._latest = (i, content)
            size = content.data.nbytes + content.indices.nbytes if scipy.sparse.issparse(content) else content.nbytes
            if i in self._seen and size <= self._room:
                self._room -= size
                self._kept[i] = content
            self._seen.add(i)
        return self._latest[1]
