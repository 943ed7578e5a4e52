"""1-NN accuracy and neighborhood hit: their definitions, on held-out rows, in both protocols and at several levels."""

from __future__ import annotations

import definitions
import numpy as np
import pandas as pd
import pytest
from definitions import CASES
from sklearn.neighbors import KNeighborsClassifier

import dre.neighbors.distances
import dre.neighbors.exact
from dre.metrics import nearest_neighbor, neighborhood_hit, neighborhood_hit_by_level


@pytest.mark.parametrize("name", CASES)
def test_leave_one_out_equals_its_definition(name: str) -> None:
    _, Y, labels = CASES[name]
    assert nearest_neighbor(Y, labels) == pytest.approx(definitions.nearest_neighbor(Y, labels), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_on_held_out_rows_it_equals_its_definition(name: str) -> None:
    _, Y, labels = CASES[name]
    reference = (Y[::2], labels[::2])
    wanted = definitions.nearest_neighbor(Y[1::2], labels[1::2], reference)
    assert nearest_neighbor(Y[1::2], labels[1::2], reference=reference) == pytest.approx(wanted, abs=1e-12)


def test_on_held_out_rows_it_is_the_accuracy_of_a_classifier_with_one_neighbor() -> None:
    _, Y, labels = definitions.normal(600, seed=9)
    wanted = KNeighborsClassifier(1).fit(Y[:400], labels[:400]).score(Y[400:], labels[400:])
    assert nearest_neighbor(Y[400:], labels[400:], reference=(Y[:400], labels[:400])) == pytest.approx(wanted, abs=1e-12)
    assert 0 < wanted < 1


def test_one_held_out_row_is_enough() -> None:
    assert nearest_neighbor([[0.9, 0]], ["b"], reference=([[0, 0], [1, 0]], ["a", "b"])) == 1


def test_a_label_that_the_reference_lacks_is_a_miss() -> None:
    assert nearest_neighbor([[0, 0], [1, 0]], ["c", "b"], reference=([[0, 0], [1, 0]], ["a", "b"])) == 0.5


def test_the_codes_of_both_parts_are_of_one_scale() -> None:
    reference = ([[0.0], [1.0], [2.0]], ["b", "c", "d"])
    assert nearest_neighbor([[2.1], [1.1]], ["d", "c"], reference=reference) == 1
    assert nearest_neighbor([[2.1], [1.1]], ["b", "c"], reference=reference) == 0.5


@pytest.mark.parametrize("kind", [str, int, object])
def test_labels_may_be_of_any_kind(kind: type) -> None:
    _, Y, labels = CASES["normal"]
    assert nearest_neighbor(Y, labels.astype(kind)) == nearest_neighbor(Y, labels)
    reference = (Y[:60], labels[:60])
    assert nearest_neighbor(Y[60:], labels[60:].astype(kind), reference=(Y[:60], labels[:60].astype(kind))) == nearest_neighbor(
        Y[60:], labels[60:], reference=reference
    )


def test_reference_points_of_another_width_are_an_error_that_says_what_they_should_be() -> None:
    with pytest.raises(ValueError, match="Y has 2 columns and the reference Y 3"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, reference=(np.zeros((4, 3)), [0] * 4))


@pytest.mark.parametrize("reference", [np.zeros((5, 2)), (np.zeros((5, 2)),), (1, 2, 3), "ab"])
def test_a_reference_that_is_no_pair_is_an_error_that_names_the_pair(reference: object) -> None:
    with pytest.raises(ValueError, match=r"reference must be a pair \(Y, labels\)"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, reference=reference)  # type: ignore[arg-type]


def test_reference_labels_of_another_length_are_an_error_that_names_them() -> None:
    with pytest.raises(ValueError, match=r"reference labels has the shape \(3,\).*4 rows"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, reference=(np.zeros((4, 2)), [0] * 3))


def test_reference_points_that_are_not_finite_are_an_error_that_names_them() -> None:
    with pytest.raises(ValueError, match=r"reference Y contains NaN.*row 1"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, reference=([[0.0, 0.0], [np.nan, 0.0]], [0, 1]))


def test_two_rows_are_each_others_neighbors() -> None:
    assert nearest_neighbor([[0.0], [1.0]], ["a", "a"]) == 1
    assert nearest_neighbor([[0.0], [1.0]], ["a", "b"]) == 0


def test_one_row_has_no_neighbor_to_leave_it_out_for_and_the_error_names_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"1 row has no neighbors.*reference=\(Y, labels\)"):
        nearest_neighbor([[0.0, 1.0]], ["a"])


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize("name", CASES)
def test_the_hit_equals_its_definition(name: str, k: int, protocol: str) -> None:
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
    with pytest.raises(ValueError, match=r"labels\['cluster'\] has missing values.*drop"):
        neighborhood_hit_by_level(np.zeros((4, 2)), levels, k=1)


def test_levels_without_any_are_an_error() -> None:
    with pytest.raises(ValueError, match="labels has no columns"):
        neighborhood_hit_by_level(np.zeros((4, 2)), {}, k=1)


def test_an_unknown_protocol_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="protocol='both'; known: standard, paper"):
        neighborhood_hit(np.zeros((4, 2)), [0] * 4, k=1, protocol="both")
    with pytest.raises(ValueError, match="protocol='both'; known: standard, paper"):
        neighborhood_hit_by_level(np.zeros((4, 2)), {"a": [0] * 4}, k=1, protocol="both")
