"""All metrics in one call: the same scores as their functions give, for any input type and pose of the embedding."""

from __future__ import annotations

import inspect
from typing import Any

import definitions
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from definitions import CASES, moved
from hypothesis import given, settings
from hypothesis import strategies as st

import dre.metrics
import dre.metrics.pairwise_pass
import dre.neighbors.distances
import dre.progress.display
from dre.metrics import evaluate

ALWAYS = {"trustworthiness", "continuity", "shepard_goodness", "normalized_stress"}
WITH_LABELS = {*ALWAYS, "nearest_neighbor", "neighborhood_hit", "silhouette", "centroid_correlation"}


def alone(name: str, **given: Any) -> Any:
    """The function of that name, with those of the arguments that it takes."""
    function = getattr(dre.metrics, name)
    return function(**{each: given[each] for each in inspect.signature(function).parameters if each in given})


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize(("protocol", "shepard"), [("standard", "exact"), ("paper", "histogram"), ("paper", "exact")])
@pytest.mark.parametrize("name", ["normal", "digits", "duplicates", "float32"])
def test_each_score_is_what_the_function_of_its_name_gives_alone(
    name: str, protocol: str, shepard: str, held_out: bool
) -> None:
    X, Y, labels = CASES[name]
    reference = (Y[::2], labels[::2]) if held_out else None
    levels = {"fine": labels, "coarse": labels % 2}
    result = evaluate(X, Y, levels, k=5, protocol=protocol, shepard=shepard, reference=reference)
    assert set(result) == {*WITH_LABELS, "neighborhood_hit_by_level"}
    for score, value in result.items():
        of = levels if score == "neighborhood_hit_by_level" else labels
        wanted = alone(score, X=X, Y=Y, labels=of, k=5, protocol=protocol, method=shepard, reference=reference)
        assert value == pytest.approx(wanted, abs=1e-12), score


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("name", ["normal", "digits"])
def test_the_six_of_the_paper_equal_their_definitions(name: str, protocol: str) -> None:
    X, Y, labels = CASES[name]
    result = evaluate(X, Y, labels, protocol=protocol)
    given = {"X": X, "Y": Y, "labels": labels, "k": 7, "protocol": protocol}
    for score in (*sorted(ALWAYS), "nearest_neighbor", "neighborhood_hit"):
        function = getattr(definitions, score)
        wanted = function(**{each: given[each] for each in inspect.signature(function).parameters if each in given})
        assert result[score] == pytest.approx(wanted, abs=1e-9), score


def test_without_labels_there_are_the_four_that_need_none() -> None:
    X, Y, _ = CASES["normal"]
    assert set(evaluate(X, Y)) == ALWAYS


def test_with_labels_there_are_the_others_too_and_levels_only_where_there_are_several() -> None:
    X, Y, labels = CASES["normal"]
    assert set(evaluate(X, Y, labels)) == WITH_LABELS
    assert set(evaluate(X, Y, {"one": labels})) == WITH_LABELS


def test_two_classes_have_no_order_of_distances_and_one_has_no_silhouette() -> None:
    X, Y, labels = CASES["normal"]
    assert set(evaluate(X, Y, labels > 0)) == WITH_LABELS - {"centroid_correlation"}
    assert set(evaluate(X, Y, 0 * labels)) == WITH_LABELS - {"centroid_correlation", "silhouette"}
    assert set(evaluate(X, Y, np.arange(len(X)))) == WITH_LABELS - {"silhouette"}


@pytest.mark.parametrize("as_table", [dict, pd.DataFrame])
def test_of_several_levels_the_first_is_used_and_all_are_hit(as_table: Any) -> None:
    X, Y, labels = CASES["normal"]
    result = evaluate(X, Y, as_table({"coarse": labels > 0, "fine": labels}))
    assert result["neighborhood_hit"] == result["neighborhood_hit_by_level"]["coarse"]
    assert result["neighborhood_hit_by_level"]["fine"] == evaluate(X, Y, labels)["neighborhood_hit"]
    assert list(result["neighborhood_hit_by_level"]) == ["coarse", "fine"]
    assert {**evaluate(X, Y, labels > 0)} == {name: result[name] for name in result if name != "neighborhood_hit_by_level"}


def test_reference_labels_belong_to_the_first_level() -> None:
    X, Y, labels = CASES["normal"]
    reference = (Y[:50], labels[:50] > 0)
    result = evaluate(X, Y, pd.DataFrame({"coarse": labels > 0, "fine": labels}), reference=reference)
    assert result["nearest_neighbor"] == dre.metrics.nearest_neighbor(Y, labels > 0, reference=reference)


def test_the_result_is_a_mapping_of_plain_numbers() -> None:
    X, Y, labels = CASES["normal"]
    result = evaluate(X, Y, labels)
    assert len(result) == len(dict(result)) == 8
    assert all(type(value) is float for value in result.values())
    assert "continuity" in result
    with pytest.raises(KeyError):
        result["speed"]


def test_the_same_evaluation_twice_is_equal() -> None:
    X, Y, labels = CASES["normal"]
    assert evaluate(X, Y, labels) == evaluate(X, Y, labels)
    assert evaluate(X, Y, labels) != evaluate(X, -2 * Y, labels)


def test_scores_that_are_means_are_given_for_each_point() -> None:
    X, Y, labels = CASES["normal"]
    result = evaluate(X, Y, {"fine": labels, "coarse": labels > 0})
    assert set(result.per_point) == {"trustworthiness", "continuity", "nearest_neighbor", "neighborhood_hit", "silhouette"}
    for name, values in result.per_point.items():
        assert isinstance(values, np.ndarray)
        assert values.shape == (len(X),)
        assert values.mean() == pytest.approx(result[name], abs=1e-12)
    assert np.array_equal(result.per_point["continuity"], dre.metrics.continuity(X, Y, per_point=True))
    assert set(evaluate(X, Y).per_point) == {"trustworthiness", "continuity"}


def test_printed_it_is_a_title_and_a_line_for_each_score() -> None:
    X, Y, labels = CASES["normal"]
    result = evaluate(X, Y, labels, k=5, protocol="paper")
    title, *lines = str(result).splitlines()
    assert title == "130 rows × 9 → 2, k = 5, paper protocol"
    assert [line.split()[0] for line in lines] == list(result)
    assert [float(line.split()[1]) for line in lines] == pytest.approx(list(result.values()), abs=1e-4)
    assert repr(result) == str(result)


def test_printed_each_level_has_a_line_and_what_is_inexact_its_error() -> None:
    X, Y, labels = CASES["normal"]
    result = evaluate(X, Y, {"fine": labels, "coarse": labels > 0}, shepard="histogram")
    lines = str(result).splitlines()
    assert len(lines) == 1 + 8 + 2
    assert lines[-2].startswith("neighborhood_hit, fine")
    assert lines[-1].startswith("neighborhood_hit, coarse")
    assert "±" in next(line for line in lines if line.startswith("shepard_goodness"))
    assert "leave-one-out" in next(line for line in lines if line.startswith("nearest_neighbor"))


def test_as_html_it_is_a_table_whose_names_can_do_no_harm() -> None:
    X, Y, labels = CASES["normal"]
    page = evaluate(X, Y, {"<script>": labels, "a & b": labels > 0})._repr_html_()
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    assert page.count("<tr>") == page.count("</tr>") == 10
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page


def test_what_is_handed_in_is_left_as_it_was() -> None:
    for kind in (np.array, torch.tensor):
        given = [kind(each) for each in CASES["far from the origin"]]
        before = [each.copy() if isinstance(each, np.ndarray) else each.clone() for each in given]
        evaluate(*given, protocol="paper", shepard="histogram")
        assert all(bool((a == b).all()) for a, b in zip(given, before, strict=True))
        assert all(a.dtype == b.dtype for a, b in zip(given, before, strict=True))


def of_any_kind() -> dict[str, tuple[Any, Any, Any]]:
    X, Y, labels = CASES["digits"]
    words = np.array([f"class {label}" for label in labels])
    plain = X.astype(np.float64)
    return {
        "lists": (X.tolist(), Y.tolist(), labels.tolist()),
        "integers": (X, Y, labels),
        "images": (X.astype(np.uint8).reshape(-1, 8, 8), Y, labels),
        "float32": (plain.astype(np.float32), Y.astype(np.float32), labels),
        "tables": (pd.DataFrame(X), pd.DataFrame(Y, index=range(5, 155), columns=["x", "y"]), pd.Series(labels)),
        "torch": (torch.tensor(plain), torch.tensor(Y), torch.tensor(labels)),
        "torch images": (
            torch.tensor(X, dtype=torch.uint8).reshape(-1, 1, 8, 8),
            torch.tensor(Y).float(),
            torch.tensor(labels),
        ),
        "sparse": (scipy.sparse.csr_matrix(plain), Y, labels),
        "words": (X, Y, words),
        "objects": (X, Y, words.astype(object)),
        "categories": (X, Y, pd.Categorical(words)),
        "a series of categories": (X, Y, pd.Series(words, dtype="category", index=range(300, 450))),
    }


@pytest.mark.parametrize("kind", of_any_kind())
def test_rows_maps_and_labels_of_any_kind_have_the_same_scores(kind: str) -> None:
    X, Y, labels = CASES["digits"]
    wanted = evaluate(X.astype(np.float64), Y.astype(np.float64), labels)
    assert dict(evaluate(*of_any_kind()[kind])) == pytest.approx(dict(wanted), abs=1e-12)


POSE = {
    "angle": st.floats(0, 2 * np.pi),
    "mirrored": st.booleans(),
    "shift": st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
}


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("name", ["normal", "digits", "duplicates"])
@settings(max_examples=8, deadline=None)
@given(**POSE)
def test_turning_mirroring_and_shifting_the_map_changes_no_score(
    name: str, protocol: str, angle: float, mirrored: bool, shift: tuple[float, float]
) -> None:
    X, Y, labels = CASES[name]
    result, there = (evaluate(X, each, labels, protocol=protocol) for each in (Y, moved(Y, angle, mirrored, shift)))
    for score in result:
        # 1e-6: distances of 0 are some 1e-7 off in a product, and only these two take them from it
        tolerance = 1e-6 if score in {"silhouette", "normalized_stress"} and name != "normal" else 1e-9
        assert there[score] == pytest.approx(result[score], abs=tolerance), score


@settings(max_examples=10, deadline=None)
@given(scale=st.floats(1e-6, 1e6), name=st.sampled_from(["normal", "digits", "duplicates"]))
def test_scaling_the_map_changes_only_the_standard_stress(scale: float, name: str) -> None:
    X, Y, labels = CASES[name]
    result, scaled = (evaluate(X, each, labels, protocol="paper") for each in (Y, scale * Y))
    assert dict(scaled) == pytest.approx(dict(result), abs=1e-6)
    for score in ("trustworthiness", "continuity", "neighborhood_hit", "nearest_neighbor"):
        assert scaled[score] == result[score]


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_the_order_of_the_rows_does_not_matter(protocol: str, seed: int) -> None:
    X, Y, labels = CASES["normal"]
    order = np.random.default_rng(seed).permutation(len(X))
    result, other = evaluate(X, Y, labels, protocol=protocol), evaluate(X[order], Y[order], labels[order], protocol=protocol)
    assert dict(other) == pytest.approx(dict(result), abs=1e-9)
    for name, values in other.per_point.items():
        assert values == pytest.approx(result.per_point[name][order], abs=1e-9)


@pytest.mark.parametrize("name", ["normal", "digits", "duplicates", "an outlier", "tiny", "float32"])
def test_a_map_that_is_the_rows_themselves_is_perfect(name: str) -> None:
    X, _, _ = CASES[name]
    wanted = {"trustworthiness": 1, "continuity": 1, "shepard_goodness": 1, "normalized_stress": 0}
    assert dict(evaluate(X, X)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("block", [24, 104])
@pytest.mark.parametrize("name", ["normal", "digits"])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    X, Y, labels = CASES[name]
    whole = evaluate(X, Y, labels)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert dict(evaluate(X, Y, labels)) == pytest.approx(dict(whole), abs=1e-6)


def test_a_bar_is_shown_where_someone_watches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y, _ = CASES["normal"]
    monkeypatch.setattr(dre.progress.display, "DELAY", 0.0)
    monkeypatch.setattr(dre.progress.display, "REDRAWN", 0.001)
    monkeypatch.setattr(dre.progress.display, "is_interactive", lambda: True)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": 8})  # many, so that it takes a moment
    evaluate(X, Y)
    written = capsys.readouterr()
    assert "evaluate" in written.err
    assert "|" in written.err
    assert written.out == ""


@pytest.mark.parametrize(("seconds", "watched"), [(0, False), (100, True)])
def test_no_bar_is_shown_where_nobody_watches_or_it_is_quick(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, watched: bool
) -> None:
    X, Y, labels = CASES["normal"]
    monkeypatch.setattr(dre.progress.display, "DELAY", seconds)
    monkeypatch.setattr(dre.progress.display, "is_interactive", lambda: watched)
    evaluate(X, Y, labels)
    written = capsys.readouterr()
    assert written.err == ""
    assert written.out == ""


def test_nothing_is_random() -> None:
    X, Y, labels = CASES["digits"]
    state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    assert dict(evaluate(X, Y, labels)) == dict(evaluate(X, Y, labels))
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.random.get_state()[1].tolist() == state[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "both"}, "protocol='both'; known: standard, paper"),
        ({"shepard": "fast"}, "shepard='fast'; known: auto, exact, histogram"),
        ({"metric": "cosin"}, "metric.*cosine"),
        ({"device": "gpu"}, "device='gpu' .* use 'auto', 'cpu'"),
        ({"reference": (np.zeros((4, 2)), [0] * 4)}, "reference=.*needs labels"),
        ({"labels": np.zeros(130), "reference": (np.zeros((4, 3)), [0] * 4)}, "2 columns and the reference Y 3"),
        ({"labels": np.zeros(130), "reference": np.zeros((4, 3))}, "reference must be a pair"),
        ({"labels": np.zeros(129)}, r"labels has the shape \(129,\).*130 rows"),
        ({"labels": {"a": np.zeros(130), "b": np.zeros(3)}}, r"labels\['b'\] has the shape \(3,\)"),
        ({"labels": pd.DataFrame(index=range(130))}, "labels has no columns"),
        ({"Y": np.zeros((129, 2))}, "X has 130 rows and Y has 129"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_that_names_the_remedy(options: dict[str, Any], message: str) -> None:
    X, Y, _ = CASES["normal"]
    with pytest.raises(ValueError, match=message):
        evaluate(**{"X": X, "Y": Y, **options})


def test_an_index_with_the_same_names_in_another_order_is_an_error_that_names_the_remedy() -> None:
    X, Y, labels = CASES["normal"]
    frame, names = pd.DataFrame(X), pd.Series(labels)
    mixed = np.random.default_rng(0).permutation(len(X))
    with pytest.raises(ValueError, match=r"pass labels.loc\[X.index\]"):
        evaluate(frame, Y, names.iloc[mixed])
    with pytest.raises(ValueError, match=r"pass Y.loc\[X.index\]"):
        evaluate(frame, pd.DataFrame(Y).iloc[mixed])
    assert evaluate(frame, Y, names) == evaluate(frame, Y, names.set_axis(names.index + 1000)), "other names say nothing"
