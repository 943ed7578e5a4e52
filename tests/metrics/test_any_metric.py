"""Scores under metrics without a transform: those of scikit-learn, and alike for rows, functions and matrices of distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn.manifold
import torch
from scipy.spatial.distance import cdist, squareform
from scipy.stats import spearmanr
from sklearn.metrics import pairwise_distances

import dre.neighbors.metric_distances
from dre.data.metric import METRICS, row_metric
from dre.metrics import (
    centroid_correlation,
    centroid_distances,
    continuity,
    evaluate,
    neighbor_recall,
    normalized_stress,
    shepard_diagram,
    shepard_goodness,
    trustworthiness,
)
from dre.metrics.evaluation import class_scores, quick_scores
from dre.neighbors.metric_distances import CHECKED

OTHERS = [name for name, kind in METRICS.items() if not kind.transforms and name != "precomputed"]
SCORES: list[Callable[..., Any]] = [trustworthiness, continuity, shepard_goodness, normalized_stress]
RNG = np.random.default_rng(0)
X = RNG.random((90, 6)) + 0.1
Y = RNG.normal(size=(90, 2)) + 3 * X[:, :2]
LABELS = np.arange(90) % 4


def rows_of(metric: str) -> np.ndarray:
    return X > 0.6 if metric in ("jaccard", "hamming") else X


def apart(Z: np.ndarray) -> np.ndarray:
    return squareform(pairwise_distances(Z), checks=False)


@pytest.mark.parametrize("metric", [name for name in OTHERS if name not in ("hamming", "jaccard")])
def test_trustworthiness_is_that_of_scikit_learn(metric: str) -> None:
    ours = trustworthiness(X, Y, k=7, metric=metric)
    theirs = sklearn.manifold.trustworthiness(pairwise_distances(X, metric=metric), Y, n_neighbors=7, metric="precomputed")
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("metric", OTHERS)
def test_all_scores_of_rows_are_those_of_their_distances(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    D = pairwise_distances(rows_of(metric), metric=metric)
    monkeypatch.setattr(dre.neighbors.metric_distances, "BLOCK", 32)
    of_rows = evaluate(rows_of(metric), Y, LABELS, metric=metric)
    of_distances = evaluate(D, Y, LABELS, metric="precomputed")
    assert dict(of_rows) == pytest.approx(dict(of_distances), rel=1e-9)
    assert f"{metric} metric" in of_rows.title
    assert class_scores(rows_of(metric), Y, {"a": LABELS}, metric=metric)["a"]["centroid_correlation"] == pytest.approx(
        of_rows["centroid_correlation"]
    )


@pytest.mark.parametrize("metric", ["manhattan", "canberra"])
def test_distances_are_those_of_the_metric(metric: str) -> None:
    high, low = squareform(pairwise_distances(X, metric=metric), checks=False), apart(Y)
    assert shepard_goodness(X, Y, metric=metric) == pytest.approx(spearmanr(high, low)[0], abs=1e-9)
    stress = np.sqrt(((high - low) ** 2).sum() / (high**2).sum())
    assert normalized_stress(X, Y, metric=metric) == pytest.approx(stress, rel=1e-9)
    diagram = shepard_diagram(X, Y, metric=metric, bins=10)
    assert diagram.high_edges[[0, -1]] == pytest.approx([high.min(), high.max()])
    near = np.argsort(pairwise_distances(X, metric=metric) + np.diag([np.inf] * 90), axis=1)[:, :5]
    far = np.argsort(pairwise_distances(Y) + np.diag([np.inf] * 90), axis=1)[:, :5]
    shared = np.mean([len(set(a) & set(b)) for a, b in zip(near, far, strict=True)]) / 5
    assert neighbor_recall(X, Y, k=5, metric=metric)[-1] == pytest.approx(shared)


# Every metric by hand. Weights of the columns leave no two pairs of boolean rows equally far.

BOOLEAN = RNG.random((60, 40)) < 0.4
NUMBERS = RNG.random((60, 40)) * BOOLEAN
COLUMNS = RNG.random(40) + 0.1
BY_HAND: dict[str, tuple[Any, dict[str, Any]]] = {
    "euclidean": (NUMBERS, {}),
    "cosine": (NUMBERS, {}),
    "correlation": (NUMBERS, {}),
    "manhattan": (NUMBERS, {}),
    "chebyshev": (NUMBERS + RNG.random(NUMBERS.shape), {}),
    "minkowski": (NUMBERS, {"p": 3}),
    "canberra": (NUMBERS, {}),
    "braycurtis": (NUMBERS, {}),
    "hamming": (BOOLEAN, {"w": COLUMNS}),
    "jaccard": (BOOLEAN, {"w": COLUMNS}),
}
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": np.asarray,
    "numbers": lambda rows: rows.astype(np.float64),
    "sparse": scipy.sparse.csr_array,
    "sparse numbers": lambda rows: scipy.sparse.csc_matrix(rows.astype(np.float64)),
    "tensor": torch.from_numpy,
}


def by_hand(D: np.ndarray, E: np.ndarray, k: int) -> dict[str, float]:
    """The scores of distances E beside D, by loops over their rows."""
    n = len(D)
    orders = [np.array([[j for j in np.argsort(row) if j != i] for i, row in enumerate(each)]) for each in (D, E)]
    ranks = [np.zeros((n, n), int) for _ in orders]
    for rank, order in zip(ranks, orders, strict=True):
        for i in range(n):
            rank[i, order[i]] = np.arange(1, n)
    beyond = [
        sum(max(0, rank[i, j] - k) for i in range(n) for j in order[i, :k])
        for rank, order in zip(ranks, orders[::-1], strict=True)
    ]
    trust, kept = (1 - 2 * each / (n * k * (2 * n - 3 * k - 1)) for each in beyond)
    shared = [len(set(orders[0][i, :k]) & set(orders[1][i, :k])) / k for i in range(n)]
    upper = np.triu_indices(n, 1)
    return {
        "trustworthiness": trust,
        "continuity": kept,
        "neighbor_recall": float(np.mean(shared)),
        "shepard_goodness": spearmanr(D[upper], E[upper])[0],
        "normalized_stress": np.sqrt(((D[upper] - E[upper]) ** 2).sum() / (D[upper] ** 2).sum()),
    }


@cache
def scores_by_hand(metric: str) -> dict[str, float]:
    rows, kwds = BY_HAND[metric]
    D = cdist(rows, rows, METRICS[metric].scipy or metric, **kwds)
    if METRICS[metric].transforms and metric != "euclidean":
        D = np.sqrt(2 * D.clip(0))  # the Euclidean distance of the transformed rows
    return by_hand(D, cdist(Y[:60], Y[:60]), 7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", BY_HAND)
def test_scores_are_those_by_hand(metric: str, form: str) -> None:
    rows, kwds = BY_HAND[metric]
    Z, k, wanted = Y[:60], 7, scores_by_hand(metric)
    X, options = FORMS[form](rows), {"metric": metric, "metric_kwds": kwds}
    found = {
        "trustworthiness": trustworthiness(X, Z, k=k, **options),
        "continuity": continuity(X, Z, k=k, **options),
        "neighbor_recall": neighbor_recall(X, Z, k=k, **options)[-1],
        "shepard_goodness": shepard_goodness(X, Z, **options),
        "normalized_stress": normalized_stress(X, Z, **options),
    }
    assert found == pytest.approx(wanted, rel=1e-7)
    scores = evaluate(X, Z, k=k, **options)
    shared = set(scores) & set(wanted)
    assert {name: scores[name] for name in shared} == pytest.approx({name: wanted[name] for name in shared}, rel=1e-7)
    assert len(shared) >= 4


def test_a_function_scores_as_by_hand() -> None:
    def farthest(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.abs(x - y).max())

    wanted, scores = by_hand(cdist(X, X, "chebyshev"), cdist(Y, Y), 7), evaluate(X, Y, k=7, metric=farthest)
    assert scores["trustworthiness"] == pytest.approx(wanted["trustworthiness"])
    assert neighbor_recall(X, Y, k=7, metric=farthest)[-1] == pytest.approx(wanted["neighbor_recall"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize("metric", ["cosine", "manhattan", "precomputed"])
def test_a_gpu_that_is_not_there_is_an_error(metric: str) -> None:
    rows = pairwise_distances(X) if metric == "precomputed" else X
    for score in (*SCORES, evaluate):
        with pytest.raises(ValueError, match=r"device='cuda'.*finds no CUDA device"):
            score(rows, Y, metric=metric, device="cuda")


def test_the_histogram_of_shepard_bounds_its_error() -> None:
    exact, binned = (shepard_goodness(X, Y, metric="manhattan", method=method) for method in ("exact", "histogram"))
    assert binned == pytest.approx(exact, abs=1e-3)


def test_centroids_follow_from_distances_as_between_points() -> None:
    euclidean = centroid_distances(X, Y, LABELS)
    by_distances = centroid_distances(pairwise_distances(X), Y, LABELS, metric="precomputed")
    np.testing.assert_allclose(by_distances.high, euclidean.high, atol=1e-7)
    assert centroid_correlation(X, Y, LABELS, metric="manhattan") <= 1


@pytest.mark.parametrize("score", SCORES)
def test_functions_and_keywords(score: Callable[..., Any]) -> None:
    calls = []

    def distance(x: np.ndarray, y: np.ndarray, p: int) -> float:
        calls.append(1)
        return float((np.abs(x - y) ** p).sum() ** (1 / p))

    named = score(X, Y, metric="minkowski", metric_kwds={"p": 3})
    assert score(X, Y, metric=distance, metric_kwds={"p": 3}) == pytest.approx(named, rel=1e-9)
    assert len(calls) <= 90 * 90 + 4 * CHECKED  # each pair is computed once, beside those by which the function is checked
    assert score(X, Y, metric=row_metric("minkowski", {"p": 3})) == named


def test_sparse_rows_and_tensors_are_taken() -> None:
    wanted = trustworthiness(X > 0.6, Y, metric="jaccard")
    assert trustworthiness(scipy.sparse.csr_array(X > 0.6), Y, metric="jaccard") == wanted
    assert trustworthiness(torch.from_numpy(X), torch.from_numpy(Y), metric="canberra") == trustworthiness(
        X, Y, metric="canberra"
    )


def test_quick_scores_take_the_metric() -> None:
    assert quick_scores(X, Y, metric="canberra")["trustworthiness"] == trustworthiness(X, Y, metric="canberra")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (X, {"metric": "braycurtiss"}, "unknown metric.*braycurtis"),
        (X, {"metric": "cosine", "metric_kwds": {"p": 1}}, "takes none"),
        (X, {"metric": "precomputed"}, "no matrix of distances"),
        (scipy.sparse.csr_array(pairwise_distances(X)), {"metric": "precomputed"}, "sparse.*all their distances"),
        (pairwise_distances(X)[:80, :80], {"metric": "precomputed"}, "80 rows and Y has 90"),
        (X, {"metric": lambda x, y: -1.0}, "is -1.0"),
    ],
)
def test_errors_name_the_thing(rows: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(rows, Y, **options)
