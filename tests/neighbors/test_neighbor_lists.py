"""Pairs of neighbors and distances: the nearest of each row, whatever the container, order and gaps; nonsense is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from dre.neighbors.distance_graph import neighbors_in_graph
from dre.neighbors.neighbor_lists import read_neighbor_lists
from dre.neighbors.search import Neighbors


def nearest_listed(indices: Any, distances: Any, n: int, k: int) -> Neighbors:
    return read_neighbor_lists(indices, distances, n).nearest(k)


def read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def big_endian(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder(">"))


FORMS = {
    "array": np.asarray,
    "tensor": torch.as_tensor,
    "list": lambda each: each.tolist(),
    "data frame": pd.DataFrame,
    "reversed": lambda each: each[::-1, ::-1].copy()[::-1, ::-1],
    "big endian": big_endian,
    "read-only": read_only,
    "Fortran": np.asfortranarray,
}


def listed(n: int = 40, m: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """As scikit-learn and UMAP list them: the row itself first."""
    X = np.random.default_rng(1).normal(size=(n, 3))
    distances = cdist(X, X)
    order = distances.argsort(axis=1)[:, :m]
    return order, np.take_along_axis(distances, order, axis=1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("convert", FORMS.values(), ids=FORMS.keys())
def test_given_neighbors_lose_the_row_itself_and_keep_the_nearest_k(convert) -> None:
    indices, distances = listed()
    found = nearest_listed(convert(indices), convert(distances), n=40, k=6)
    assert found.method == "precomputed"
    assert found.indices.dtype == torch.long
    np.testing.assert_array_equal(found.indices, indices[:, 1:7])
    np.testing.assert_allclose(found.distances, distances[:, 1:7], rtol=1e-6)


def test_given_neighbors_may_come_in_any_order_and_without_the_row_itself() -> None:
    indices, distances = listed()
    shuffled = np.random.default_rng(0).permuted(np.tile(np.arange(9), (40, 1)), axis=1)
    found = nearest_listed(
        np.take_along_axis(indices[:, 1:], shuffled, axis=1), np.take_along_axis(distances[:, 1:], shuffled, axis=1), 40, 9
    )
    np.testing.assert_array_equal(found.indices, indices[:, 1:])
    np.testing.assert_array_equal(found.distances, distances[:, 1:])


def test_given_neighbors_are_left_as_they_were() -> None:
    indices, distances = listed()
    nearest_listed(indices, distances, 40, 3)
    np.testing.assert_array_equal(indices, listed()[0])
    np.testing.assert_array_equal(distances, listed()[1])


def test_whole_numbers_may_be_distances() -> None:
    assert nearest_listed([[1], [0]], [[3], [3]], 2, 1).distances.tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("k", [10, 25])
def test_too_few_given_neighbors_are_an_error_that_names_the_number_and_the_remedy(k: int) -> None:
    with pytest.raises(ValueError, match=rf"row 0 has 9 others.*k={k}.*perplexity or n_neighbors.*more neighbors"):
        nearest_listed(*listed(), n=40, k=k)


def changed(which: int, value: float) -> tuple[np.ndarray, np.ndarray]:
    pair = listed()
    pair[which][7, 3] = value
    return pair


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (changed(0, 40), "id 40 in row 7, column 3.*0 to 39"),
        (changed(0, -2), "id -2 in row 7, column 3.*0 to 39"),
        (changed(1, np.nan), "distance nan in row 7, column 3.*finite"),
        (changed(1, np.inf), "distance inf in row 7, column 3.*finite"),
        (changed(1, -0.5), r"distance -0\.5 in row 7, column 3.*negative"),
        (changed(0, listed()[0][7, 2]), "row 7 lists an id twice"),
        (listed()[::-1], r"integers, not torch\.float64.*\(indices, distances\)"),
        ((listed()[0], listed()[1] > 1), r"distances.*not torch\.bool.*\(indices, distances\)"),
        ((listed()[0][:, :5], listed()[1]), r"\(40, 5\).*\(40, 10\).*\(n, m\)"),
        ((listed()[0][0], listed()[1][0]), r"\(10,\).*\(n, m\)"),
        (listed(n=30), r"\(30, 10\).*X has 40 rows"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_given_neighbors_that_make_no_sense_are_refused(pair: tuple[np.ndarray, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nearest_listed(*pair, n=40, k=5)


def test_texts_are_no_neighbors() -> None:
    with pytest.raises(ValueError, match=r"indices hold <U\d+, not numbers"):
        nearest_listed(listed()[0].astype(str), listed()[1], 40, 5)


# Neighbors that a search did not find.


def with_gaps(rows: list[int], last: int) -> tuple[np.ndarray, np.ndarray]:
    """As pynndescent and UMAP mark them: the id -1, infinitely far."""
    indices, distances = listed()
    indices[rows, -last:], distances[rows, -last:] = -1, np.inf
    return indices, distances


def test_gaps_beyond_the_nearest_do_not_matter() -> None:
    found, whole = nearest_listed(*with_gaps([3, 8], 4), 40, 5), nearest_listed(*listed(), 40, 5)
    assert torch.equal(found.indices, whole.indices)
    with pytest.raises(ValueError, match="row 3 has 5 others"):
        nearest_listed(*with_gaps([3, 8], 4), 40, 6)


def test_rows_with_gaps_go_on_along_the_graph() -> None:
    lists = read_neighbor_lists(*with_gaps([3, 8], 6), 40)
    assert lists.lack_some
    found, whole = neighbors_in_graph(lists.graph(), 40, 9), nearest_listed(*listed(), 40, 9)
    assert found.completed == 2
    others = np.setdiff1d(np.arange(40), [3, 8])
    assert torch.equal(found.indices[others], whole.indices[others])
    np.testing.assert_allclose(found.distances[[3, 8], :3], whole.distances[[3, 8], :3])
    lengths = np.sort(dijkstra(lists.graph(), indices=[3, 8]), axis=1)[:, 1:10]
    np.testing.assert_allclose(found.distances[[3, 8]], lengths)


def test_a_graph_of_lists_has_every_neighbor_once() -> None:
    indices, distances = with_gaps([3], 2)
    indices[7, 3] = indices[7, 2]
    with pytest.raises(ValueError, match="row 7 lists an id twice"):
        read_neighbor_lists(indices, distances, 40).graph()
