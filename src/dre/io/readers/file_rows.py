"""Rows that are read from a file on demand, in blocks that stay in memory where there is room."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.block_array import BlockArray
from dre.data.rows import HostRows, chunk_length
from dre.io.readers.chunks import checked_chunks, read_whole
from dre.io.readers.memory import ARRAY_COPIES, check_memory, check_rows
from dre.io.readers.source import Array, as_source_error, check_numeric, file_state, unchanged

MIN_BLOCK_VALUES = 2**16  # smaller blocks cost more per read than they save


class LazyArray(Protocol):
    """An array in a file, as h5py, zarr and `numpy.memmap` open it: indexing with a slice or increasing ids reads it."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, which: Any) -> Any: ...


class FileRows:
    """`Rows` over a lazy array, in the array's own dtype.

    They are not `HostRows`, so training checks their values as it reads them.

    Parameters
    ----------
    path : Path
    array : LazyArray
    what : str, default="an array"
        For messages.
    edges : array, default=None
        Rows at which parts of the file begin and end, in which work is best divided; by default those of the array's blocks.
    """

    def __init__(self, path: Path, array: LazyArray, what: str = "an array", edges: Array | None = None) -> None:
        check_numeric(path, array.shape, array.dtype, what)
        check_rows(path, array.shape, array.dtype, what)
        self.shape = tuple(int(size) for size in array.shape)
        self._path, self._rows, self._state = path, HostRows(array), file_state(path)
        self.in_blocks = not isinstance(array, np.memmap)  # HDF5 is slow at single rows too
        self.edges = array.edges if edges is None and isinstance(array, BlockArray) else edges

    def place(self, row: int) -> str:
        """Name a row for messages."""
        return f"row {row} of {self._path}"

    def read(self, start: int, stop: int) -> Tensor:
        """Read consecutive rows."""
        with as_source_error(self._path), unchanged(self._path, self._state):
            return self._rows.read(start, stop)

    def take(self, ids: Tensor) -> Tensor:
        """Read rows in any order; each is read once, in the order of the file."""
        unique, inverse = np.unique(ids.cpu().numpy(), return_inverse=True)
        if len(unique) and not 0 <= unique[0] <= unique[-1] < self.shape[0]:
            raise IndexError(f"row ids {unique[0]} to {unique[-1]} are out of range: there are {self.shape[0]} rows")
        with as_source_error(self._path), unchanged(self._path, self._state):
            return self._rows.take(torch.from_numpy(unique))[torch.from_numpy(inverse)]


def open_array(path: Path, array: Any, what: str = "an array") -> FileRows:
    """Open an array of HDF5 or zarr; a chunked one is read in blocks of its chunks, a contiguous one directly."""
    check_numeric(path, array.shape, array.dtype, what)
    check_rows(path, array.shape, array.dtype, what, array.chunks)
    if array.chunks is None and not getattr(array, "is_virtual", False):
        return FileRows(path, array, what)
    read = checked_chunks(path, array)
    shape = tuple(int(size) for size in array.shape)
    step = min(max((array.chunks or (1,))[0], chunk_length(shape[1:], MIN_BLOCK_VALUES)), chunk_length(shape[1:]))
    edges = np.append(np.arange(0, shape[0], step), shape[0])
    return FileRows(path, BlockArray(shape, array.dtype, edges, read), what)


def open_csr(path: Path, group: Any, shape: tuple[int, int], what: str) -> FileRows:
    """Open a CSR matrix stored as data, indices and indptr; only indptr is read at once."""
    check_numeric(path, shape, group["data"].dtype, what)
    check_rows(path, shape, group["data"].dtype, what, group["data"].chunks)
    indptr = _read_indptr(path, group, shape[0])
    edges = _balanced_edges(indptr)
    values_of, columns_of = checked_chunks(path, group["data"]), checked_chunks(path, group["indices"])
    largest = int(np.diff(indptr[edges]).max())
    size = group["data"].dtype.itemsize + group["indices"].dtype.itemsize
    check_memory(path, ARRAY_COPIES * size * largest, f"a row of {largest:,} values of {what}", "leave it out")

    def load(start: int, stop: int) -> Any:
        first, last = int(indptr[start]), int(indptr[stop])
        values, columns = np.asarray(values_of(first, last)), np.asarray(columns_of(first, last))
        block = scipy.sparse.csr_matrix((values, columns, indptr[start : stop + 1] - first), shape=(stop - start, shape[1]))
        block.check_format()  # a column index out of range would write out of bounds later
        return block

    return FileRows(path, BlockArray(shape, group["data"].dtype, edges, load), what)


def read_csc(path: Path, group: Any, shape: tuple[int, int], what: str) -> Any:
    """Read all of a CSC matrix, in which every row is spread over the file, and convert it to CSR."""
    check_numeric(path, shape, group["data"].dtype, what)
    check_rows(path, shape, group["data"].dtype, what)
    indptr = _read_indptr(path, group, shape[1])
    remedy = "save it as CSR, which is read in pieces"
    parts = [read_whole(path, group[name], f"{name} of {what}, stored by columns,", remedy) for name in ("data", "indices")]
    matrix = scipy.sparse.csc_matrix((*parts, indptr), shape=shape)
    matrix.check_format()
    return matrix.tocsr()


def _read_indptr(path: Path, group: Any, count: int) -> Array:
    """The places at which the rows or columns of a sparse matrix begin, checked against its other parts."""
    stored = tuple(group["data"].shape)
    if len(stored) != 1 or tuple(group["indices"].shape) != stored or tuple(group["indptr"].shape) != (count + 1,):
        raise ValueError(f"data, indices and indptr do not fit to a sparse matrix of {count} rows or columns")
    indptr = read_whole(path, group["indptr"], "indptr").astype(np.int64)
    if indptr[0] != 0 or indptr[-1] != stored[0] or (np.diff(indptr) < 0).any():
        raise ValueError(f"indptr does not divide {stored[0]} values among {count} rows or columns")
    return indptr


def _balanced_edges(indptr: Array) -> Array:
    """Edges of blocks with about `MIN_BLOCK_VALUES` stored values each."""
    n = len(indptr) - 1
    edges = np.searchsorted(indptr, np.arange(0, int(indptr[-1]), MIN_BLOCK_VALUES), side="left")
    return np.unique(np.concatenate([[0], edges[edges < n], [n]]))
