"""A sparse matrix in a file: by rows it is read piece by piece, by columns it must be read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from dre.io.readers.blocks import LEAST_VALUES, Blocks
from dre.io.readers.file_rows import FileRows
from dre.io.readers.source import Array


def csr_rows(path: Path, group: Any, shape: tuple[int, int], what: str) -> FileRows:
    """Blocks of rows that hold about as many values each; only where the rows begin is held."""
    begins = np.asarray(group["indptr"][:]).astype(np.int64)
    _check(begins, shape[0], group)

    def load(start: int, stop: int) -> Any:
        at, end = int(begins[start]), int(begins[stop])
        values, columns = np.asarray(group["data"][at:end]), np.asarray(group["indices"][at:end])
        block = scipy.sparse.csr_matrix((values, columns, begins[start : stop + 1] - at), shape=(stop - start, shape[1]))
        block.check_format()  # a column that is not there would be written somewhere
        return block

    return FileRows(path, Blocks(shape, group["data"].dtype, _edges(begins), load), what)


def csr_of_csc(group: Any, shape: tuple[int, int]) -> Any:
    """All of a matrix that is stored by columns, in which every row is everywhere."""
    begins = np.asarray(group["indptr"][:])
    _check(begins, shape[1], group)
    stored = scipy.sparse.csc_matrix((np.asarray(group["data"][:]), np.asarray(group["indices"][:]), begins), shape=shape)
    stored.check_format()
    return stored.tocsr()


def _edges(begins: Array) -> Array:
    """Where blocks begin and end: a new one at the first row after so many values more."""
    n = len(begins) - 1
    marks = np.searchsorted(begins, np.arange(0, int(begins[-1]), LEAST_VALUES), side="left")
    return np.unique(np.concatenate([[0], marks[marks < n], [n]]))


def _check(begins: Array, count: int, group: Any) -> None:
    stored = group["data"].shape[0]
    if len(begins) != count + 1 or begins[0] != 0 or begins[-1] != stored or (np.diff(begins) < 0).any():
        raise ValueError(f"indptr does not divide its {stored} values among {count}")
