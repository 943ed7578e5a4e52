"""Neighbourhood hit: its definition in both protocols, at one level of labels and at several."""

from __future__ import annotations

import definitions
import numpy as np
import pandas as pd
import pytest
from definitions import CASES

import dre.neighbors.distances
import dre.neighbors.exact
from dre.metrics import neighborhood_hit, neighborhood_hit_by_level


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize("name", CASES)
def test_it_equals_its_definition(name: str, k: int, protocol: str) -> None:
    _, Y, labels = CASES[name]
    wanted = definitions.neighborhood_hit(Y, labels, k, protocol)
    assert neighborhood_hit(Y, labels, k=k, protocol=protocol) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("protocol", ["standard", "paper"])
def test_each_point_has_a_multiple_of_one_kth_and_their_mean_is_the_score(protocol: str) -> None:
    _, Y, labels = CASES["digits"]
    values = neighborhood_hit(Y, labels, k=5, protocol=protocol, per_point=True)
    assert isinstance(values, np.ndarray)
    assert values.shape == (len(Y),)
    assert set(np.round(5 * values, 9)) <= set(range(6))
    assert values.mean() == pytest.approx(neighborhood_hit(Y, labels, k=5, protocol=protocol), abs=1e-12)


def test_a_point_that_counts_itself_has_one_hit_at_least() -> None:
    _, Y, _ = CASES["normal"]
    assert neighborhood_hit(Y, np.arange(len(Y)), k=5) == 0
    assert neighborhood_hit(Y, np.arange(len(Y)), k=5, protocol="paper") == pytest.approx(1 / 5)


@pytest.mark.parametrize("block", [8, 104])
@pytest.mark.parametrize("name", ["normal", "digits"])
def test_neither_blocks_nor_the_search_matter(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    _, Y, labels = CASES[name]
    whole = neighborhood_hit(Y, labels)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    monkeypatch.setattr(dre.neighbors.exact, "TREE_UP_TO", 0)
    assert neighborhood_hit(Y, labels) == whole


@pytest.mark.parametrize("protocol", ["standard", "paper"])
def test_each_level_is_the_hit_of_its_own_labels(protocol: str) -> None:
    _, Y, labels = CASES["normal"]
    levels = {"fine": labels, "coarse": labels > 0}
    found = neighborhood_hit_by_level(Y, levels, k=5, protocol=protocol)
    assert found == {name: neighborhood_hit(Y, each, k=5, protocol=protocol) for name, each in levels.items()}
    assert found == neighborhood_hit_by_level(Y, pd.DataFrame(levels), k=5, protocol=protocol)
    assert found["fine"] < found["coarse"]


def test_a_level_with_missing_labels_is_an_error_that_names_it() -> None:
    levels = {"class": [0, 1, 0, 1], "cluster": ["a", None, "b", "b"]}
    with pytest.raises(ValueError, match=r"labels\['cluster'\] has missing values; drop these rows or give them a label"):
        neighborhood_hit_by_level(np.zeros((4, 2)), levels, k=1)


def test_levels_without_any_are_an_error() -> None:
    with pytest.raises(ValueError, match="labels has no columns"):
        neighborhood_hit_by_level(np.zeros((4, 2)), {}, k=1)


def test_an_unknown_protocol_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="protocol='both'; known: standard, paper"):
        neighborhood_hit(np.zeros((4, 2)), [0] * 4, k=1, protocol="both")
    with pytest.raises(ValueError, match="protocol='both'; known: standard, paper"):
        neighborhood_hit_by_level(np.zeros((4, 2)), {"a": [0] * 4}, k=1, protocol="both")
