"""Centroids of classes: their distances, and whether the map keeps the order of these."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import CASES, Array
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from dre.metrics import centroid_correlation, centroid_distances


def means(rows: Array, labels: Array) -> Array:
    return np.array(
        [np.mean([row for row, label in zip(rows, labels, strict=True) if label == c], axis=0) for c in sorted(set(labels))]
    )


@pytest.mark.parametrize("name", ["digits", "an outlier", "far from the origin", "tiny", "one column", "six columns"])
def test_it_is_spearmans_correlation_of_the_distances_between_means(name: str) -> None:
    X, Y, labels = CASES[name]
    labels = np.arange(len(X)) % 7 if name != "digits" else labels
    high, low = pdist(means(X, labels)), pdist(means(Y, labels))
    assert centroid_correlation(X, Y, labels) == pytest.approx(spearmanr(high, low).statistic, abs=1e-12)
    found = centroid_distances(X, Y, labels)
    assert found.high == pytest.approx(squareform(high), rel=1e-9)
    assert found.low == pytest.approx(squareform(low), rel=1e-9)


def test_classes_are_named_and_in_the_order_of_the_distances() -> None:
    Y = np.array([[0.0], [5.0], [1.0], [6.0], [20.0]])
    found = centroid_distances(Y, 2 * Y, ["b", "a", "b", "a", "c"])
    assert found.classes.tolist() == ["a", "b", "c"]
    assert found.high == pytest.approx(np.array([[0, 5, 14.5], [5, 0, 19.5], [14.5, 19.5, 0]]))
    assert found.low == pytest.approx(2 * found.high)


def test_distances_that_are_all_equal_have_no_correlation() -> None:
    labels = np.arange(12) % 3
    assert np.isnan(centroid_correlation(np.eye(3)[labels], np.random.default_rng(0).normal(size=(12, 2)), labels))
    assert np.isnan(centroid_correlation(np.random.default_rng(0).normal(size=(12, 2)), np.full((12, 2), 0.1), labels))


@pytest.mark.parametrize("function", [centroid_correlation, centroid_distances])
def test_fewer_than_three_classes_are_an_error_that_says_so(function: object) -> None:
    X, Y, labels = CASES["normal"]
    with pytest.raises(ValueError, match=r"2 classes.*3 to"):
        function(X, Y, labels > 0)  # type: ignore[operator]
