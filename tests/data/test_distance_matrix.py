"""Matrices of distances: what is none is refused with the reason, and some rows are taken with their columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

import dre.data.distance_matrix
from dre.data.distance_matrix import DistanceRows, check_distances
from dre.data.subsample import to_array

X = np.random.default_rng(0).normal(size=(50, 3))
D = pairwise_distances(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_taken_as_they_are(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.data.distance_matrix, "ROWS", 7)
    assert check_distances(D.astype(dtype)) is not None
    graph = kneighbors_graph(X, 5, mode="distance")
    assert (check_distances(graph) != graph).nnz == 0  # its two directions differ: each row lists its own neighbors


@pytest.mark.parametrize("row", [0, 20, 49])
def test_one_wrong_pair_is_found(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.data.distance_matrix, "ROWS", 7)
    wrong = D.copy()
    wrong[row, 10] += 1
    with pytest.raises(ValueError, match="not symmetric"):
        check_distances(wrong)
    wrong[row, 10] = -1
    with pytest.raises(ValueError, match=f"negative distance, -1.0, from row {row} to row 10"):
        check_distances(wrong)


def test_a_negative_entry_of_a_graph_is_found() -> None:
    graph = scipy.sparse.csr_array(([1.0, 2.0, -3.0], [1, 0, 1], [0, 1, 2, 3]), (3, 3))
    with pytest.raises(ValueError, match=r"negative distance, -3.0, from row 2 to row 1"):
        check_distances(graph)


def test_some_rows_come_with_their_columns() -> None:
    ids = np.array([3, 7, 20])
    np.testing.assert_array_equal(to_array(DistanceRows(D), ids), D[np.ix_(ids, ids)])
    np.testing.assert_array_equal(DistanceRows(D).read(2, 5), D[2:5])
    assert DistanceRows(D).take(torch.arange(50)).shape == (50, 50)
    with pytest.raises(ValueError, match=r"\(10, 50\) to the fitted rows"):
        DistanceRows(D[:10])


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int32])
def test_whole_numbers_and_booleans_become_floats(dtype: type) -> None:
    whole = (100 * np.abs(np.subtract.outer(np.arange(5), np.arange(5))) % 300).astype(dtype)
    for matrix in (whole, scipy.sparse.csr_matrix(whole)):
        found = check_distances(matrix)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(to_array(found, slice(None)), whole)
