"""Neighbors from sparse graphs: those of scikit-learn and scanpy as they are, ragged ones completed along paths."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import kneighbors_graph

from dre.neighbors.distance_graph import neighbors_in_graph
from dre.neighbors.search import nearest

X = np.random.default_rng(0).normal(size=(80, 4))


def graph(k: int = 9) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(kneighbors_graph(X, k, mode="distance"))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_a_graph_of_scikit_learn_is_read_as_it_is(form: str) -> None:
    found, wanted = neighbors_in_graph(graph().asformat(form), 80, 9), nearest(X, 9, metric="manhattan", method="exact")
    assert found.completed == 0
    assert found.indices.shape == wanted.indices.shape
    exact = np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1:10]
    np.testing.assert_allclose(found.distances, exact, rtol=1e-12)


def test_more_than_are_needed_are_cut_to_the_nearest() -> None:
    few, many = neighbors_in_graph(graph(5), 80, 5), neighbors_in_graph(graph(20), 80, 5)
    np.testing.assert_array_equal(few.indices, many.indices)


def test_the_row_itself_is_no_neighbor_and_a_stored_zero_is() -> None:
    D = scipy.sparse.csr_array((np.array([0.0, 0.0, 1.0, 0.0, 2.0]), np.array([0, 1, 2, 0, 0]), np.array([0, 3, 4, 5])), (3, 3))
    assert neighbors_in_graph(D, 3, 1).indices.tolist() == [[1], [0], [0]]


def test_short_rows_are_completed_by_the_shortest_paths() -> None:
    ragged = graph().tolil()
    for row in (3, 40):
        ragged[row, ragged.rows[row][2:]] = 0  # an lil matrix forgets zeros
    ragged = scipy.sparse.csr_array(ragged)
    found = neighbors_in_graph(ragged, 80, 9)
    assert found.completed == 2
    lengths = dijkstra(ragged, indices=[3, 40])
    np.testing.assert_allclose(found.distances[[3, 40]], np.sort(lengths, axis=1)[:, 1:10], rtol=1e-12)
    assert all(len(set(row.tolist()) - {i}) == 9 for i, row in enumerate(found.indices))


def test_fewer_neighbors_than_are_needed_are_all_there_are() -> None:
    assert neighbors_in_graph(graph(9), 80, 90).indices.shape == (80, 9)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (scipy.sparse.csr_array((79, 79)), r"\(79, 79\) for 80 rows"),
        (-graph(), r"distance -\d.*not negative"),
        (graph() * np.nan, "distance nan.*finite"),
    ],
)
def test_what_is_no_graph_of_these_rows_is_refused(D: scipy.sparse.csr_array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neighbors_in_graph(D, 80, 5)


def test_a_row_without_neighbors_is_named() -> None:
    lonely = graph().tolil()
    lonely[7] = 0
    with pytest.raises(ValueError, match=r"row 7 reaches 0 others.*Leave such rows out"):
        neighbors_in_graph(lonely, 80, 5)


def test_similarities_in_place_of_distances_are_said() -> None:
    D = graph()
    similarities = scipy.sparse.csr_array((np.exp(-(D.data**2)), D.indices, D.indptr), D.shape)
    nearest_of_row = similarities.max(axis=1).toarray().ravel()
    similarities.data /= np.repeat(nearest_of_row, np.diff(D.indptr))  # as umap's memberships: 1 for the nearest
    with pytest.warns(UserWarning, match="connectivities"):
        neighbors_in_graph(similarities, 80, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neighbors_in_graph(D, 80, 5)


def test_indicators_in_place_of_distances_are_said() -> None:
    with pytest.warns(UserWarning, match=r"all entries are 1.*mode='distance'"):
        neighbors_in_graph(kneighbors_graph(X, 9, mode="connectivity"), 80, 5)
