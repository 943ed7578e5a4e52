"""Blocks of rows: each is read at most twice while the cache has room, and a single pass caches nothing."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from dre.data.block_array import BlockArray
from dre.io.readers.file_rows import read_csc

X = np.arange(60).reshape(20, 3)
EDGES = np.array([0, 4, 5, 11, 20])


@pytest.fixture
def loaded():
    return []


@pytest.fixture
def blocks(loaded):
    def load(start, stop):
        loaded.append(start)
        return X[start:stop].copy()

    return BlockArray(X.shape, X.dtype, EDGES, load)


def test_any_rows_are_those_of_the_array(blocks):
    for start in range(0, 20, 3):
        for stop in range(start, 21):
            np.testing.assert_array_equal(blocks[start:stop], X[start:stop])
    np.testing.assert_array_equal(blocks[np.array([0, 3, 4, 10, 19])], X[[0, 3, 4, 10, 19]])


def test_a_block_is_read_once_and_only_where_it_is_needed(blocks, loaded):
    blocks[np.array([6, 10])]
    blocks[5:11]
    blocks[np.array([7, 19])]
    assert loaded == [5, 11]


def test_with_room_all_blocks_are_cached_from_the_second_read_on(loaded, blocks):
    for _ in range(4):
        blocks[0:20]
    assert loaded == 2 * [0, 4, 5, 11]


def test_a_single_pass_reads_each_block_once_and_caches_none(loaded, blocks):
    for start in range(0, 20, 3):
        blocks[start : start + 3]
    assert loaded == [0, 4, 5, 11]
    assert not blocks._cache


def test_without_room_only_the_latest_block_is_held(monkeypatch, loaded):
    monkeypatch.setattr("dre.data.block_array.available_bytes", lambda: 0)

    def load(start, stop):
        loaded.append(start)
        return X[start:stop]

    blocks = BlockArray(X.shape, X.dtype, EDGES, load)
    blocks[0:2]
    blocks[2:4]
    assert loaded == [0]
    blocks[0:20]
    blocks[0:20]
    assert loaded == [0, 4, 5, 11, 0, 4, 5, 11]


def test_changing_a_result_leaves_the_cache_unchanged(blocks):
    blocks[0:4][:] = -1
    np.testing.assert_array_equal(blocks[0:4], X[:4])


def test_each_array_of_a_matrix_by_columns_is_checked_once(tmp_path, monkeypatch):
    matrix, checked = scipy.sparse.random(8, 5, 0.5, "csc", random_state=0), []
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in ("data", "indices", "indptr"):
            file[name] = getattr(matrix, name)
        monkeypatch.setattr("dre.io.readers.memory.check_memory", lambda path, needed, what, remedy: checked.append(what))
        found = read_csc(tmp_path / "x.h5", file, matrix.shape, "a matrix")
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())
    assert sum("stored by columns" in what for what in checked) == 2
