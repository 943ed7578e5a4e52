"""Rows and labels of any type are accepted; errors name a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import dre.metrics
from dre.datasets.infinite_mnist import BaseDigits, InfiMNIST
from dre.metrics.inputs import as_points, check_choice, check_k, encode_labels, encode_levels, first_level, paired_spaces

ROWS = np.random.default_rng(0).integers(256, size=(20, 4, 3))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        ROWS.astype(np.uint8),
        ROWS.astype(np.float16),
        torch.tensor(ROWS),
        torch.tensor(ROWS, dtype=torch.uint8),
        torch.tensor(ROWS, dtype=torch.double, requires_grad=True),
        ROWS.reshape(20, 12).tolist(),
        pd.DataFrame(ROWS.reshape(20, 12)),
        scipy.sparse.csr_matrix(ROWS.reshape(20, 12).astype(np.float64)),
        scipy.sparse.csr_array(ROWS.reshape(20, 12)),
        np.asfortranarray(ROWS.reshape(20, 12)),
    ],
    ids=lambda rows: f"{type(rows).__name__} {getattr(rows, 'dtype', '')}",
)
def test_rows_of_any_kind_are_the_same_points_in_float64(rows: Any) -> None:
    found = as_points(rows, "X")
    assert found.dtype == torch.double
    assert not found.requires_grad
    assert found.tolist() == ROWS.reshape(20, 12).tolist()


@pytest.mark.parametrize("rows", [ROWS.astype(np.float32), torch.tensor(ROWS, dtype=torch.float32)])
def test_float32_stays_so(rows: Any) -> None:
    assert as_points(rows, "X").dtype == torch.float32


class Stream:
    """Rows that are read piece by piece, and count how many were."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = torch.tensor(values, dtype=torch.float32)
        self.shape = tuple(values.shape)
        self.given = 0

    def read(self, start: int, stop: int) -> torch.Tensor:
        self.given += stop - start
        return self._values[start:stop]

    def take(self, ids: torch.Tensor) -> torch.Tensor:
        self.given += len(ids)
        return self._values[ids]


def test_a_stream_is_read_once_and_scored_as_the_array_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 12 * 7)  # several chunks
    stream, map_, labels = Stream(ROWS), ROWS[:, 0, :2], ROWS[:, 0, 0] % 3
    found = dre.metrics.evaluate(stream, map_, labels)
    assert found == dre.metrics.evaluate(ROWS.astype(np.float32), map_, labels)
    assert stream.given == len(ROWS)
    digits = BaseDigits(np.random.default_rng(0).integers(256, size=(30, 28, 28), dtype=np.uint8), np.arange(30) % 3, tests=5)
    rows = InfiMNIST(digits, range(20, 60), device="cpu")
    embedding = rows.read(0, 40)[:, 9, 9:11].numpy()
    assert dre.metrics.evaluate(rows, embedding, rows.labels) == dre.metrics.evaluate(np.asarray(rows), embedding, rows.labels)


def test_a_stream_without_columns_or_with_gaps_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"X has the shape \(20,\).*\(n, d\)"):
        as_points(Stream(ROWS[:, 0, 0]), "X")
    broken = ROWS.astype(np.float32)
    broken[11, 1, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first in row 11"):
        as_points(Stream(broken), "X")


@pytest.mark.parametrize("rows", [np.zeros(5), torch.zeros(5), [1.0, 2.0, 3.0], torch.zeros(5, dtype=torch.long)])
def test_rows_without_columns_are_an_error(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"Y .*\(n, d\)"):
        as_points(rows, "Y")


@pytest.mark.parametrize("rows", [np.zeros((0, 2)), torch.zeros(0, 2), np.zeros((4, 0)), torch.zeros(4, 0)])
def test_rows_that_are_none_or_hold_nothing_are_an_error(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"0 sample|0 feature|hold no values"):
        as_points(rows, "Y")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("as_kind", [np.asarray, torch.tensor, pd.DataFrame, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("which", ["X", "Y"])
def test_values_that_are_not_finite_are_an_error_that_names_where_and_what_to_do(
    which: str, as_kind: Callable[[Any], Any], bad: float
) -> None:
    spaces = {"X": np.ones((20, 3)), "Y": np.ones((20, 2))}
    spaces[which][11, 1] = bad
    spaces[which] = as_kind(spaces[which])
    kind = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=rf"Input {which} contains {kind}: .* row 11 at \[1\].*SimpleImputer"):
        dre.metrics.evaluate(spaces["X"], spaces["Y"])


def test_texts_are_an_error_that_says_to_convert_them() -> None:
    with pytest.raises(ValueError, match=r"Convert your data to numeric values"):
        as_points([["a", "b"]], "X")


def test_different_numbers_of_rows_are_an_error_that_names_both() -> None:
    with pytest.raises(ValueError, match="X has 30 rows and Y has 29"):
        paired_spaces(np.zeros((30, 5)), np.zeros((29, 2)))


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_rows_are_an_error_that_says_how_many_it_takes(n: int) -> None:
    with pytest.raises(ValueError, match=f"{n} rows.*at least 3"):
        dre.metrics.shepard_goodness(np.zeros((n, 5)), np.zeros((n, 2)))


LABELS = ["b", "a", "c", "a"]


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        tuple(LABELS),
        np.array(LABELS),
        np.array(LABELS, dtype=object),
        np.array(LABELS)[:, None],
        pd.Series(LABELS, index=[9, 8, 7, 6]),
        pd.Series(LABELS, dtype="string"),
        pd.Series(LABELS, dtype="category"),
        pd.Categorical(LABELS),
        pd.Index(LABELS),
        pd.DataFrame({"label": LABELS}),
        [1, 0, 2, 0],
        np.array([1, 0, 2, 0], dtype=np.uint8),
        np.array([0.5, -1.0, 7.0, -1.0]),
        torch.tensor([5, 3, 9, 3]),
        pd.Series([1, 0, 2, 0], dtype="Int64"),
        pd.Categorical([1, 0, 2, 0]),
        pd.Series(pd.to_datetime(["2021", "2020", "2022", "2020"])),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_labels_of_any_kind_are_numbered_in_their_order(labels: Any) -> None:
    assert encode_labels(labels, 4).tolist() == [1, 0, 2, 0]


def test_truths_are_labels() -> None:
    assert encode_labels(np.array([True, False, True]), 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b"],
        [1, None, 2],
        [1.0, np.nan, 2.0],
        np.array([1.0, np.nan, 2.0], dtype=np.float32),
        torch.tensor([1.0, torch.nan, 2.0]),
        np.array(["a", np.nan, "b"], dtype=object),
        ["a", np.nan, "b"],
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Categorical(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(pd.to_datetime(["2020", None, "2021"])),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_missing_labels_are_an_error_that_says_what_to_do(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"labels has missing values.*drop"):
        encode_labels(labels, 3)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], np.zeros((3, 2)), 5, np.zeros((1, 3))])
def test_labels_of_another_shape_are_an_error_that_says_how_many_are_expected(labels: Any) -> None:
    shape = re.escape(str(np.shape(labels)))
    with pytest.raises(ValueError, match=f"labels has the shape {shape}.*3 rows"):
        encode_labels(labels, 3)


@pytest.mark.parametrize("label", [-1, "none of them"])
def test_one_label_for_all_rows_warns_that_scores_by_it_say_nothing(label: Any) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.warns(UserWarning, match=f"labels are {label} for all 30 rows.*two classes or more, or none") as found:
        dre.metrics.evaluate(X, X[:, :2], labels=[label] * 30, k=5)
    assert {warning.filename for warning in found} == {__file__}


def test_levels_keep_their_names_and_order() -> None:
    table = {"cluster": ["x", "y", "x"], "class": [1, 1, 0]}
    for given in (table, pd.DataFrame(table, index=[5, 6, 7])):
        found = encode_levels(given, 3)
        assert {name: each.tolist() for name, each in found.items()} == {"cluster": [0, 1, 0], "class": [1, 1, 0]}
        assert list(found) == ["cluster", "class"]
        assert list(first_level(given)) == ["x", "y", "x"]
    assert list(encode_levels(["x", "y", "x"], 3)) == ["labels"]
    assert first_level(["x", "y"]) == ["x", "y"]


@pytest.mark.parametrize("k", [1, 9, np.int64(4), np.uint8(4)])
def test_k_from_1_to_below_half_the_rows_is_a_whole_number(k: Any) -> None:
    assert check_k(k, 19) == int(k)
    assert type(check_k(k, 19)) is int


ASKED = {
    "trustworthiness": lambda X, Y, labels, k: dre.metrics.trustworthiness(X, Y, k=k),
    "continuity": lambda X, Y, labels, k: dre.metrics.continuity(X, Y, k=k),
    "neighborhood_hit": lambda X, Y, labels, k: dre.metrics.neighborhood_hit(Y, labels, k=k),
    "neighborhood_hit_by_level": lambda X, Y, labels, k: dre.metrics.neighborhood_hit_by_level(Y, {"a": labels}, k=k),
    "neighbor_recall": lambda X, Y, labels, k: dre.metrics.neighbor_recall(X, Y, k=k),
    "neighbor_agreement": lambda X, Y, labels, k: dre.metrics.neighbor_agreement(X, Y, k=k),
    "evaluate": lambda X, Y, labels, k: dre.metrics.evaluate(X, Y, labels, k=k),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_metric_checks_k_and_names_the_range(name: str) -> None:
    X, Y, labels = np.zeros((20, 3)), np.zeros((20, 2)), np.arange(20) % 3
    for k in (0, -1, 10, 100):
        with pytest.raises(ValueError, match=rf"k={k} .*20 rows.*below.*10"):
            ASKED[name](X, Y, labels, k)
    for k in (2.5, 2.0, True, "7"):
        with pytest.raises(TypeError, match=rf"k={k!r}: expected an integer"):
            ASKED[name](X, Y, labels, k)
    ASKED[name](X, Y, labels, 9)


@pytest.mark.parametrize("name", ASKED)
def test_no_k_is_not_taken_for_another_k_than_the_default(name: str) -> None:
    X, Y, labels = (np.random.default_rng(0).normal(size=(20, d)) for d in (3, 2, 1))
    with pytest.raises(TypeError, match="k=None: expected an integer"):
        ASKED[name](X, Y, np.round(labels), None)


X, Y, L = np.zeros((20, 3)), np.zeros((20, 2)), np.arange(20) % 3
ON_A_DEVICE: dict[str, Callable[[str], Any]] = {
    "trustworthiness": lambda device: dre.metrics.trustworthiness(X, Y, device=device),
    "continuity": lambda device: dre.metrics.continuity(X, Y, device=device),
    "nearest_neighbor": lambda device: dre.metrics.nearest_neighbor(Y, L, device=device),
    "neighborhood_hit": lambda device: dre.metrics.neighborhood_hit(Y, L, device=device),
    "neighborhood_hit_by_level": lambda device: dre.metrics.neighborhood_hit_by_level(Y, {"a": L}, device=device),
    "shepard_goodness": lambda device: dre.metrics.shepard_goodness(X, Y, device=device),
    "normalized_stress": lambda device: dre.metrics.normalized_stress(X, Y, device=device),
    "silhouette": lambda device: dre.metrics.silhouette(Y, L, device=device),
    "centroid_correlation": lambda device: dre.metrics.centroid_correlation(X, Y, L, device=device),
    "neighbor_recall": lambda device: dre.metrics.neighbor_recall(X, Y, k=5, device=device),
    "neighbor_agreement": lambda device: dre.metrics.neighbor_agreement(X, Y, k=5, device=device),
    "evaluate": lambda device: dre.metrics.evaluate(X, Y, L, device=device),
}


@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_an_unknown_device_is_an_error_that_names_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"device='gpu' .*use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"):
        ON_A_DEVICE[name]("gpu")
    ON_A_DEVICE[name]("cpu")


def test_one_of_several_is_itself_and_any_other_an_error_that_lists_them() -> None:
    assert check_choice("method", "b", ("a", "b")) == "b"
    with pytest.raises(ValueError, match="method='c'; known: a, b"):
        check_choice("method", "c", ("a", "b"))
