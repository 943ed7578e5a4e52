"""Scores from the command line equal those of `dre.metrics`, for coordinates and models, all rows and samples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE
from dre.cli.evaluate import DESCRIPTIONS, score_table
from dre.data.subsample import evenly_spaced_ids
from dre.io.readers import open_source
from dre.metrics import evaluate
from dre.metrics.evaluation import ALL_METRICS, CLASS_METRICS

X = load_digits().data[:300].astype(np.float32)
LABELS = load_digits().target[:300]
COORDINATES = np.ascontiguousarray(X[:, 20:22] + np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32))
Run = Callable[..., int]


@pytest.fixture
def data(dre: Run) -> None:
    """The same rows as an array and as a table, with labels, and coordinates of them."""
    np.save("x.npy", X)
    np.save("y.npy", COORDINATES)
    Path("labels.txt").write_text("\n".join(map(str, LABELS)))
    head = ",".join(["", *(f"p{i}" for i in range(64)), "digit", "kind"])
    lines = [",".join([f"row {i}", *map(str, X[i].tolist()), str(LABELS[i]), f"d{LABELS[i]}"]) for i in range(300)]
    Path("x.csv").write_text("\n".join([head, *lines]))


def shown(told: str) -> dict[str, list[float]]:
    """The values of each measure in the printed table, by its name and label."""
    return {
        found[1]: [float(value) for value in re.findall(r"-?\d\.\d{4}", found[2])]
        for line in told.splitlines()
        for found in [re.match(r"(\w+(?:, \S+)?) +(.*\d.*)", line)]
        if found and found[1].partition(",")[0] in DESCRIPTIONS
    }


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize(("said", "labels"), [("x.npy", "labels.txt"), ("x.csv", "digit"), ("x.csv", "kind"), ("x.npy", None)])
def test_scores_are_those_of_the_metrics(
    dre: Run, capsys: pytest.CaptureFixture[str], said: str, labels: str | None, protocol: str
) -> None:
    # of two columns that could be labels, the other is a feature
    rows = np.column_stack([X, LABELS]) if (said, labels) == ("x.csv", "kind") else X
    options = [] if labels is None else ["--labels", labels]
    assert dre("evaluate", said, "y.npy", *options, "--protocol", protocol, "-k", 5) == 0
    expected = evaluate(rows, COORDINATES, None if labels is None else LABELS, k=5, protocol=protocol)
    found = shown(capsys.readouterr().out)
    of_labels = {each.name for each in CLASS_METRICS}
    assert set(found) == {f"{name}, {labels}" if name in of_labels else name for name in expected}
    for name, (value,) in found.items():
        assert value == pytest.approx(expected[name.partition(",")[0]], abs=1e-4)


@pytest.mark.usefixtures("data")
def test_each_of_several_labels_is_scored_under_its_name(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("batch no.txt").write_text("\n".join(f"b{i % 3}" for i in range(300)))
    assert dre("evaluate", "x.npy", "y.npy", "--labels", "labels.txt", "--labels", "batch no.txt", "-o", "s.json") == 0
    written = json.loads(Path("s.json").read_text())
    assert written["labels"] == ["labels.txt", "batch no.txt"]
    told = capsys.readouterr().out
    for name, labels in (("labels.txt", LABELS), ("batch no.txt", np.arange(300) % 3)):
        expected = evaluate(X, COORDINATES, labels)
        scores = written["maps"][0]["by_label"][name]
        assert scores == pytest.approx({each.name: expected[each.name] for each in CLASS_METRICS}, abs=1e-6)
        for each, value in scores.items():
            assert re.search(rf"^{each}, {name} +{value:.4f} ", told, re.MULTILINE)
    assert shown(told)["nearest_neighbor, labels.txt"] != []


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("values", "kind"),
    [(np.linspace(0, 1, 300), "numbers"), (np.arange("2026-01-01", 300, dtype="datetime64[D]"), "dates")],
    ids=["numbers", "dates"],
)
def test_numbers_and_dates_are_no_classes(
    dre: Run, capsys: pytest.CaptureFixture[str], values: np.ndarray[Any, Any], kind: str
) -> None:
    Path("when.txt").write_text("\n".join(map(str, values)))
    assert dre("evaluate", "x.npy", "y.npy", "--labels", "when.txt", "--labels", "labels.txt") == 0
    told = capsys.readouterr()
    assert f"when.txt holds {kind}, not classes, and is not scored" in told.err
    assert "when.txt" not in told.out
    assert "nearest_neighbor, labels.txt" in told.out


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("sample", "which"),
    [("all", "240 rows (of 300, those that have a label) "), ("60", "60 rows (of 240 that have a label, evenly spaced) ")],
)
def test_rows_without_a_label_are_not_called_sampled_away(
    dre: Run, capsys: pytest.CaptureFixture[str], sample: str, which: str
) -> None:
    Path("some.txt").write_text("\n".join("" if i % 5 == 1 else f"d{label}" for i, label in enumerate(LABELS)))
    assert dre("evaluate", "x.npy", "y.npy", "--labels", "some.txt", "--sample", sample) == 0
    told = capsys.readouterr()
    assert "60 rows have no label and are not scored" in told.err
    assert told.out.startswith(which)


@pytest.mark.usefixtures("data")
def test_of_a_model_every_stage_is_scored(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    model = DRE(schedule="x: gaussian(5) -> kl * 3; h1: gaussian(5) -> kl * 2", random_state=0, device="cpu").fit(X)
    model.save("m.safetensors")
    assert dre("evaluate", "x.npy", "m.safetensors", "--labels", "labels.txt", "-o", "s.json", "--device", "cpu") == 0
    told = capsys.readouterr().out
    assert re.search(r"stage 0 +stage 1 +best", told)
    written = json.loads(Path("s.json").read_text())
    assert (written["rows"], written["of"]) == (300, 300)
    for stage in (0, 1):
        expected = evaluate(X, model.transform(X, stage=stage), LABELS)
        assert written["maps"][stage]["scores"] == pytest.approx(dict(expected), abs=1e-4)
        assert shown(told)["continuity"][stage] == pytest.approx(expected["continuity"], abs=1e-4)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("is_model", [False, True], ids=["coordinates", "model"])
def test_some_rows_are_from_end_to_end_with_their_coordinates_and_labels(
    dre: Run, capsys: pytest.CaptureFixture[str], is_model: bool
) -> None:
    ids = evenly_spaced_ids(300, 100)
    assert (len(ids), ids[0], ids[-1]) == (100, 0, 299)
    assert np.ptp(np.diff(ids)) <= 1
    model = DRE(schedule="x: gaussian(5) -> kl * 3", random_state=0, device="cpu").fit(X)
    model.save("m.safetensors")
    coordinates = model.transform(X) if is_model else COORDINATES
    said = "m.safetensors" if is_model else "y.npy"
    assert dre("evaluate", "x.npy", said, "--labels", "labels.txt", "--sample", "100", "-o", "s.json") == 0
    assert "100 rows (of 300, evenly spaced)" in capsys.readouterr().out
    expected = evaluate(X[ids], coordinates[ids], LABELS[ids])
    assert json.loads(Path("s.json").read_text())["maps"][-1]["scores"] == pytest.approx(dict(expected), abs=1e-4)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("out", ["p.csv", "p.tsv.gz", "p.parquet", "p.npy"])
def test_every_point_has_its_own_values(dre: Run, out: str) -> None:
    expected = evaluate(X, COORDINATES).per_point
    assert dre("evaluate", "x.npy", "y.npy", "--sample", "all", "--per-point", out) == 0
    found = open_source(out)
    rows = found.rows if isinstance(found.rows, np.ndarray) else found.rows.read(0, 300).numpy()
    assert rows == pytest.approx(np.stack([expected["trustworthiness"], expected["continuity"]], axis=1), abs=1e-6)
    if out != "p.npy":
        assert found.columns == ["trustworthiness", "continuity"]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("said", "names"), [("x.npy", "{}"), ("x.csv", "row {}")])
def test_points_of_a_sample_say_which_rows_they_are(dre: Run, said: str, names: str) -> None:
    assert dre("evaluate", said, "y.npy", "--sample", "50", "--per-point", "p.csv") == 0
    found = open_source("p.csv")
    assert found.names is not None
    assert found.names.tolist() == [names.format(i) for i in evenly_spaced_ids(300, 50)]


@pytest.mark.usefixtures("data")
def test_points_are_numbered_as_in_the_file_if_rows_lack_values(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("gap.npy", np.where(np.arange(300)[:, None] == 4, np.nan, X))
    assert dre("evaluate", "gap.npy", "y.npy", "--sample", "all", "--per-point", "p.csv") == 0
    found = open_source("p.csv")
    assert found.names is not None
    assert found.names.tolist() == [str(i) for i in range(300) if i != 4]
    assert dre("evaluate", "gap.npy", "y.npy", "--sample", "all", "--per-point", "p.npy") == 2
    assert "only 299 of 300 rows are scored" in capsys.readouterr().err


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["x.npy", "nowhere.npy"], "nowhere.npy"),
        (["x.npy", "x.npy"], "dre transform"),
        (["short.npy", "y.npy"], "pass the embedded rows"),
        (["x.npy", "y.npy", "--protocol", "textbook"], "standard, paper"),
        (["x.npy", "y.npy", "--sample", "some"], "or all"),
        (["x.npy", "y.npy", "--sample", "0"], "or all"),
        (["x.npy", "y.npy", "--sample", "10"], "below half the rows"),
        (["x.npy", "y.npy", "-k", "150"], "below half the rows"),
        (["x.npy", "y.npy", "--labels", "species"], "neither a column"),
        (["x.npy", "y.npy", "-o", "scores.txt"], "such as scores.json"),
        (["x.npy", "y.npy", "-o", "there.json"], "--force"),
        (["x.npy", "y.npy", "--per-point", "there.csv"], "--force"),
        (["x.npy", "y.npy", "--per-point", "x.npy", "--force"], "would be overwritten"),
        (["x.npy", "y.npy", "--per-point", "p.h5ad"], "such as p."),
        (["x.npy", "y.npy", "--sample", "50", "--per-point", "p.npy"], "--sample all"),
        (["x.npy", "none.safetensors"], "dre fit"),
        (["x.npy", "wrong.safetensors"], "not a model"),
    ],
)
def test_what_can_not_be_scored_is_refused(
    dre: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], remedy: str
) -> None:
    np.save("short.npy", X[:200])
    for name in ("there.json", "there.csv", "wrong.safetensors"):
        Path(name).write_text("mine")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert dre("evaluate", *arguments) == 2
    told = capsys.readouterr().err
    assert remedy in told
    assert len(told.splitlines()) <= 3
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.usefixtures("data")
def test_scores_that_are_there_are_written_over_when_forced(dre: Run) -> None:
    Path("s.json").write_text("mine")
    assert dre("evaluate", "x.npy", "y.npy", "-o", "s.json", "--force") == 0
    assert json.loads(Path("s.json").read_text())["rows"] == 300


def test_every_measure_of_one_number_has_its_words() -> None:
    assert set(DESCRIPTIONS) == {measure.name for measure in ALL_METRICS} - {"neighborhood_hit_by_level"}


@pytest.mark.parametrize("maps", [1, 2, 5])
def test_the_table_keeps_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch, maps: int) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = score_table({f"stage {i}": dict.fromkeys(DESCRIPTIONS, 0.5) for i in range(maps)})
    assert max(map(len, told.splitlines())) <= 80
    for _, words in DESCRIPTIONS.values():
        assert words in told
    assert ("\n    " in told) == (maps == 5)


def test_what_has_no_value_is_a_dash() -> None:
    assert "–" in score_table({"value": {"silhouette": float("nan")}})


def test_of_a_model_the_rows_are_what_it_was_fitted_to(dre: Run) -> None:
    """A column that was none of its features does not count."""
    table = np.column_stack([X[:, 20:26], 1000 * np.arange(len(X))])
    np.savetxt("t.csv", table, delimiter=",", header="a,b,c,d,e,f,time", comments="", fmt="%g")
    np.savetxt("u.csv", table[:, :6], delimiter=",", header="a,b,c,d,e,f", comments="", fmt="%g")
    short = ["--schedule", "x: gaussian(5) -> kl * 2", "--seed", "0", "--device", "cpu"]
    assert dre("fit", "t.csv", "-o", "m.safetensors", "--labels", "time", *short) == 0
    for name in ("t", "u"):
        assert dre("evaluate", f"{name}.csv", "m.safetensors", "-o", f"{name}.json", "--device", "cpu") == 0
    wide, narrow = (json.loads(Path(f"{name}.json").read_text())["maps"] for name in ("t", "u"))
    assert wide == narrow


def test_a_model_in_the_place_of_data_is_told_of(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("evaluate", "m.safetensors", "x.npy") == 2
    assert "DATA comes first" in capsys.readouterr().err


@pytest.mark.usefixtures("data")
def test_one_label_for_all_rows_is_said(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("same.npy", np.full(300, -1))
    assert dre("evaluate", "x.npy", "y.npy", "--labels", "same.npy") == 0
    assert capsys.readouterr().err.count("labels are -1 for all 300 rows") == 1
