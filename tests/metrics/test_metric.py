"""Metrics that compare X with its embedding under a metric of the rows: invariances, and agreement with scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any

import definitions
import numpy as np
import pytest
from sklearn import manifold

import dre.metrics
from dre.metrics import evaluate, quick_scores

X, Y, _ = definitions.normal(300, seed=5)
LABELS = np.arange(len(X)) % 12
RNG = np.random.default_rng(0)
FACTORS = RNG.uniform(0.1, 10, size=(len(X), 1))
SHIFTS = RNG.normal(size=(len(X), 1))
READ_X = [
    "centroid_correlation",
    "centroid_distances",
    "continuity",
    "evaluate",
    "neighbor_recall",
    "normalized_stress",
    "quick_scores",
    "shepard_diagram",
    "shepard_goodness",
    "trustworthiness",
]


def scores(name: str, rows: Any, metric: str) -> Any:
    """Call the function of that name; labels go where it takes some, and results are flat arrays."""
    function = getattr(dre.metrics, name)
    given = {"labels": ("class", LABELS) if name == "quick_scores" else LABELS, "bins": 10}
    own = {each: given[each] for each in inspect.signature(function).parameters if each in given}
    found = function(rows, Y, metric=metric, **own)
    parts = found.values() if hasattr(found, "values") else found[-2:] if isinstance(found, tuple) else [found]
    return np.concatenate([np.ravel(part) for part in parts]).astype(float)


def test_every_function_that_reads_X_takes_a_metric() -> None:
    functions = {name: getattr(dre.metrics, name) for name in dre.metrics.__all__}
    takes = {name for name, each in functions.items() if inspect.isfunction(each) and "X" in inspect.signature(each).parameters}
    assert takes == set(READ_X)
    assert all(inspect.signature(functions[name]).parameters["metric"].default == "euclidean" for name in takes)


@pytest.mark.parametrize("name", READ_X)
def test_cosine_ignores_the_length_of_rows(name: str) -> None:
    wanted = scores(name, X, "cosine")
    assert scores(name, FACTORS * X, "cosine") == pytest.approx(wanted, abs=1e-9)
    assert scores(name, FACTORS * X, "euclidean") != pytest.approx(scores(name, X, "euclidean"), abs=1e-9)
    assert scores(name, X, "euclidean") != pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", READ_X)
def test_correlation_ignores_the_offset_and_the_length_of_rows(name: str) -> None:
    wanted = scores(name, X, "correlation")
    assert scores(name, X + SHIFTS, "correlation") == pytest.approx(wanted, abs=1e-9)
    assert scores(name, FACTORS * X + SHIFTS, "correlation") == pytest.approx(wanted, abs=1e-9)
    assert scores(name, X + SHIFTS, "cosine") != pytest.approx(scores(name, X, "cosine"), abs=1e-9)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_trustworthiness_agrees_with_scikit_learn(metric: str, k: int) -> None:
    wanted = manifold.trustworthiness(X, Y, n_neighbors=k, metric=metric)
    assert dre.metrics.trustworthiness(X, Y, k=k, metric=metric) == pytest.approx(wanted, abs=1e-9)
    assert dre.metrics.trustworthiness(X, Y, k=k) != pytest.approx(wanted, abs=1e-9)


def test_the_embedding_is_always_euclidean() -> None:
    labels = {"nearest_neighbor", "neighborhood_hit", "silhouette"}
    cosine, euclidean = evaluate(X, Y, LABELS, metric="cosine"), evaluate(X, Y, LABELS)
    assert {name: cosine[name] for name in labels} == {name: euclidean[name] for name in labels}


def test_the_title_names_a_metric_that_is_not_the_default() -> None:
    assert "cosine metric" in evaluate(X, Y, metric="cosine").title
    assert "metric" not in evaluate(X, Y).title


@pytest.mark.parametrize("name", READ_X)
def test_an_unknown_metric_is_an_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"cosin.*euclidean, cosine, correlation"):
        scores(name, X, "cosin")


def test_quick_scores_are_those_of_the_functions() -> None:
    found = quick_scores(X, Y, ("class", LABELS))
    assert found == {
        "trustworthiness": dre.metrics.trustworthiness(X, Y),
        "continuity": dre.metrics.continuity(X, Y),
        "1-NN, class": dre.metrics.nearest_neighbor(Y, LABELS),
    }
    assert list(quick_scores(None, Y, ("class", LABELS))) == ["1-NN, class"]
    assert quick_scores(None, Y) == {}
