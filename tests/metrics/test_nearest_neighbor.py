"""1-NN accuracy: its definition, leave-one-out and on held-out rows."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
from definitions import CASES
from sklearn.neighbors import KNeighborsClassifier

from dre.metrics import nearest_neighbor


@pytest.mark.parametrize("name", CASES)
def test_leave_one_out_equals_its_definition(name: str) -> None:
    _, Y, labels = CASES[name]
    assert nearest_neighbor(Y, labels) == pytest.approx(definitions.nearest_neighbor(Y, labels), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_on_held_out_rows_it_equals_its_definition(name: str) -> None:
    _, Y, labels = CASES[name]
    train = (Y[::2], labels[::2])
    wanted = definitions.nearest_neighbor(Y[1::2], labels[1::2], train)
    assert nearest_neighbor(Y[1::2], labels[1::2], train=train) == pytest.approx(wanted, abs=1e-12)


def test_on_held_out_rows_it_is_the_accuracy_of_a_classifier_with_one_neighbour() -> None:
    _, Y, labels = definitions.normal(600, seed=9)
    wanted = KNeighborsClassifier(1).fit(Y[:400], labels[:400]).score(Y[400:], labels[400:])
    assert nearest_neighbor(Y[400:], labels[400:], train=(Y[:400], labels[:400])) == pytest.approx(wanted, abs=1e-12)
    assert 0 < wanted < 1


def test_one_held_out_row_is_enough() -> None:
    assert nearest_neighbor([[0.9, 0]], ["b"], train=([[0, 0], [1, 0]], ["a", "b"])) == 1


def test_a_label_that_training_never_saw_is_a_miss() -> None:
    assert nearest_neighbor([[0, 0], [1, 0]], ["c", "b"], train=([[0, 0], [1, 0]], ["a", "b"])) == 0.5


def test_the_codes_of_both_parts_are_of_one_scale() -> None:
    train = ([[0.0], [1.0], [2.0]], ["b", "c", "d"])
    assert nearest_neighbor([[2.1], [1.1]], ["d", "c"], train=train) == 1
    assert nearest_neighbor([[2.1], [1.1]], ["b", "c"], train=train) == 0.5


@pytest.mark.parametrize("kind", [str, int, object])
def test_labels_may_be_of_any_kind(kind: type) -> None:
    _, Y, labels = CASES["normal"]
    assert nearest_neighbor(Y, labels.astype(kind)) == nearest_neighbor(Y, labels)
    train = (Y[:60], labels[:60])
    assert nearest_neighbor(Y[60:], labels[60:].astype(kind), train=(Y[:60], labels[:60].astype(kind))) == nearest_neighbor(
        Y[60:], labels[60:], train=train
    )


def test_training_points_of_another_width_are_an_error_that_says_what_they_should_be() -> None:
    with pytest.raises(ValueError, match="Y has 2 columns and Y_train 3; both must be places in the same map"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, train=(np.zeros((4, 3)), [0] * 4))


@pytest.mark.parametrize("train", [np.zeros((5, 2)), (np.zeros((5, 2)),), (1, 2, 3), "ab"])
def test_train_that_is_not_two_is_an_error_that_names_the_two(train: object) -> None:
    with pytest.raises(ValueError, match=r"train must be the two \(Y_train, labels_train\)"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, train=train)  # type: ignore[arg-type]


def test_training_labels_of_another_length_are_an_error_that_names_them() -> None:
    with pytest.raises(ValueError, match=r"labels_train has the shape \(3,\); expected one label for each of 4 rows"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, train=(np.zeros((4, 2)), [0] * 3))


def test_training_points_that_are_not_finite_are_an_error_that_names_them() -> None:
    with pytest.raises(ValueError, match=r"Y_train contains NaN.*row 1"):
        nearest_neighbor(np.zeros((5, 2)), [0] * 5, train=([[0.0, 0.0], [np.nan, 0.0]], [0, 1]))


def test_two_rows_are_each_others_neighbours() -> None:
    assert nearest_neighbor([[0.0], [1.0]], ["a", "a"]) == 1
    assert nearest_neighbor([[0.0], [1.0]], ["a", "b"]) == 0


def test_one_row_has_no_neighbour_to_leave_it_out_for_and_the_error_names_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"1 rows have no neighbours; pass train=\(Y_train, labels_train\)"):
        nearest_neighbor([[0.0, 1.0]], ["a"])
