"""Matrices of distances: what is none is refused with the reason, and some rows are taken with their columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

import dre.data.distance_matrix
from dre import DRE
from dre.data.distance_matrix import DistanceRows, check_distances, check_finite_distances
from dre.data.subsample import to_array
from dre.metrics import trustworthiness

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


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("take", [np.asarray, torch.from_numpy, pd.DataFrame])
def test_a_pair_without_a_distance_is_named(value: float, take: Callable[[np.ndarray], Any]) -> None:
    wrong, remedy = D.copy(), "large finite distance.*sparse matrix"
    wrong[4, 30] = wrong[30, 4] = value
    with pytest.raises(ValueError, match=f"from row 4 to row 30 is {value}.*{remedy}"):
        DRE(metric="precomputed", device="cpu").fit(take(wrong))
    with pytest.raises(ValueError, match=f"from row 4 to row 30 is {value}.*{remedy}"):
        trustworthiness(take(wrong), X[:, :2], metric="precomputed")


def test_a_diagonal_that_is_not_finite_is_set_to_0() -> None:
    with pytest.raises(ValueError, match=r"of row 0 to itself is inf.*diagonal to 0"):
        check_finite_distances(D + np.diag(np.full(50, np.inf)))


def test_an_infinite_entry_of_a_graph_is_left_out() -> None:
    graph = scipy.sparse.csr_array(([1.0, np.inf, 3.0], [1, 0, 1], [0, 1, 2, 3]), (3, 3))
    with pytest.raises(ValueError, match=r"from row 1 to row 0 is inf\. .*leave out pairs"):
        check_finite_distances(graph)


@pytest.mark.parametrize("take", [np.asarray, pd.DataFrame])
def test_a_matrix_that_is_read_only_is_left_as_it_is(take: Callable[[np.ndarray], Any]) -> None:
    fixed = D.copy()
    fixed.flags.writeable = False
    # torch warns once in a process, so that another test may have taken the warning: ask for it always
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            DRE(schedule="x: gaussian(5) -> kl * 2", metric="precomputed", random_state=0, device="cpu").fit(take(fixed))
            trustworthiness(take(fixed), X[:, :2], metric="precomputed")
    finally:
        torch.set_warn_always(False)
    np.testing.assert_array_equal(fixed, D)


def test_new_rows_need_their_distances_to_the_fitted_ones() -> None:
    model = DRE(schedule="x: gaussian(5) -> kl * 2", metric="precomputed", random_state=0, device="cpu").fit(D)
    for rows in (X, torch.from_numpy(X), D[:, :49]):
        with pytest.raises(ValueError, match=r"metric='precomputed' takes the distances.*to the 50 fitted rows, \(50, 50\)"):
            model.transform(rows)


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
