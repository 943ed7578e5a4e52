"""PCA and Laplacian eigenmaps: the projection on singular vectors, and the eigensolver for each size."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from dre.baselines import spectral
from dre.baselines.spectral import PCA, LaplacianEigenmaps, solver_for


def test_the_map_is_the_projection_on_the_first_two_singular_vectors(digits):
    rows = digits.rows.reshape(200, -1).astype(np.float64)
    centred = rows - rows.mean(0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    model = PCA(random_state=0).fit(digits.rows)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(centred @ directions.T), atol=1e-2)
    new = digits.new.reshape(100, -1) - rows.mean(0)
    np.testing.assert_allclose(np.abs(model.transform(digits.new)), np.abs(new @ directions.T), atol=1e-2)


def walk(rows: np.ndarray, n_neighbors: int) -> np.ndarray:
    """D⁻¹A of the graph, without loops: where a step from a row leads."""
    graph = kneighbors_graph(rows, n_neighbors, include_self=True).toarray()
    graph = (graph + graph.T) / 2
    np.fill_diagonal(graph, 0)
    return graph / graph.sum(1, keepdims=True)


def test_each_axis_is_an_eigenvector_next_to_the_constant_one(digits):
    steps = walk(digits.rows.reshape(200, -1).astype(float), 10)
    Y = LaplacianEigenmaps(n_neighbors=10, random_state=0).fit_transform(digits.rows).astype(np.float64)
    after = steps @ Y
    found = (after * Y).sum(0) / (Y**2).sum(0)
    np.testing.assert_allclose(after, found * Y, atol=1e-4 * np.abs(Y).max())
    largest = np.sort(np.linalg.eigvals(steps).real)[::-1]
    np.testing.assert_allclose(np.sort(found)[::-1], largest[1:3], atol=1e-4)


def test_the_solver_for_many_rows_finds_the_same_map(digits, monkeypatch):
    exact = LaplacianEigenmaps(n_neighbors=10, random_state=0).fit_transform(digits.rows)
    monkeypatch.setattr(spectral, "MAX_FACTORIZED", 0)
    monkeypatch.setattr(spectral, "has_pyamg", lambda: False)
    found = LaplacianEigenmaps(n_neighbors=10, random_state=0).fit_transform(digits.rows)
    for axis in range(2):
        assert abs(np.corrcoef(exact[:, axis], found[:, axis])[0, 1]) > 0.999


def test_multigrid_takes_over_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(spectral, "has_pyamg", lambda: True)
    assert (solver_for(2000), solver_for(2001)) == ("arpack", "amg")
    monkeypatch.setattr(spectral, "has_pyamg", lambda: False)
    assert solver_for(2001) == "lobpcg"


def test_a_graph_that_falls_apart_is_said():
    X = np.concatenate([np.zeros((20, 3)), np.full((20, 3), 100.0)]) + np.random.default_rng(0).normal(size=(40, 3))
    with pytest.warns(UserWarning, match="not fully connected"):
        LaplacianEigenmaps(n_neighbors=5, random_state=0).fit(X)
