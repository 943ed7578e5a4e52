"""Silhouette of the labels: scikit-learn's, from blocks."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
from definitions import CASES
from sklearn.metrics import silhouette_samples, silhouette_score

import dre.neighbors.distances
from dre.metrics import silhouette


@pytest.mark.parametrize("name", CASES)
def test_it_equals_scikit_learn(name: str) -> None:
    _, Y, labels = CASES[name]
    Y = Y.astype(np.float64)
    assert silhouette(Y, labels) == pytest.approx(silhouette_score(Y, labels), abs=1e-6)
    assert silhouette(Y, labels, per_point=True) == pytest.approx(silhouette_samples(Y, labels), abs=1e-5)


def test_without_duplicates_it_equals_scikit_learn_to_the_last_digits() -> None:
    _, Y, labels = CASES["normal"]
    assert silhouette(Y, labels) == pytest.approx(silhouette_score(Y, labels), abs=1e-12)
    assert silhouette(Y, labels, per_point=True) == pytest.approx(silhouette_samples(Y, labels), abs=1e-12)


@pytest.mark.parametrize("block", [8, 104, 10**9])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    _, Y, labels = CASES["normal"]
    whole = silhouette(Y, labels)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert silhouette(Y, labels) == pytest.approx(whole, abs=1e-12)


def test_the_only_one_of_a_class_has_0() -> None:
    _, Y, labels = CASES["normal"]
    labels = labels.copy()
    labels[17] = 9
    values = silhouette(Y, labels, per_point=True)
    assert isinstance(values, np.ndarray)
    assert values.shape == (len(Y),)
    assert values[17] == 0
    assert values == pytest.approx(silhouette_samples(Y, labels), abs=1e-12)


@pytest.mark.parametrize("place", [0.0, 0.1, 1e3 / 3])
def test_where_all_lie_in_one_place_no_class_is_nearer(place: float) -> None:
    _, Y, labels = CASES["normal"]
    assert silhouette(np.full_like(Y, place), labels) == 0


@pytest.mark.parametrize("labels", [[0] * 8, list(range(8))])
def test_one_class_or_as_many_as_rows_are_an_error_that_says_how_many_it_takes(labels: list[int]) -> None:
    with pytest.raises(ValueError, match=r"[18] classes for 8 rows.*at least 2"):
        silhouette(definitions.normal(8).Y, labels)
