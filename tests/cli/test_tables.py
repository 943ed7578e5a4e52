"""Ordinary tables on the command line: which columns are features, names of rows, labels, and missing values."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre import DRE

RNG = np.random.default_rng(0)
N = 60
SHORT = ["--schedule", "x: gaussian(5) -> kl * 2", "--seed", "0", "--device", "cpu"]
Run = Callable[..., int]


def write_table(name: str = "people.csv", gaps: int = 0) -> None:
    """Sixty people with an id, a postal code, a date, two measures, a kind and an answer."""
    size, weight = RNG.normal(170, 10, N), RNG.normal(70, 9, N)
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_id", "zip", "joined", "size", "weight", "kind", "member"])
        for i in range(N):
            writer.writerow(
                [900_000 + 7 * i, f"{i % 9:05d}", f"2024-03-{i % 28 + 1:02d}", "" if i < gaps else f"{size[i]:.1f}",
                 f"{weight[i]:.2f}", "abc"[i % 3], "yes" if i % 2 else "no"]
            )  # fmt: skip


def read(name: str) -> list[list[str]]:
    with open(name, newline="") as file:
        return list(csv.reader(file))


def test_what_identifies_the_rows_is_not_mapped_and_it_is_said_once(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_table()
    assert dre("fit", "people.csv", "-o", "m.safetensors", *SHORT) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "dre: 2 features: size, weight"
    assert told[1].startswith("dre: not features: customer_id (named like an id); zip (codes with leading zeros)")
    assert DRE.load("m.safetensors").feature_names_in_.tolist() == ["size", "weight"]
    for command in (["transform", "m.safetensors", "people.csv", "-o", "y.csv"], ["evaluate", "people.csv", "m.safetensors"]):
        assert dre(*command) == 0
        assert "features" not in capsys.readouterr().err
    assert dre("info", "m.safetensors") == 0
    assert "size, weight" in capsys.readouterr().out


def test_the_names_of_the_rows_are_carried_into_the_output(dre: Run) -> None:
    write_table()
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--embedding", "y.csv", *SHORT) == 0
    assert read("y.csv")[0] == ["customer_id", "dre1", "dre2"]
    assert [line[0] for line in read("y.csv")[1:]] == [str(900_000 + 7 * i) for i in range(N)]
    assert dre("fit", "people.csv", "-o", "n.safetensors", "--id", "zip", "--embedding", "z.csv", *SHORT) == 0
    assert read("z.csv")[1][0] == "00000"


def test_columns_are_chosen_dropped_and_encoded(dre: Run) -> None:
    write_table()
    for options, features in {
        ("--columns", "size"): ["size"],
        ("--columns", "size-weight"): ["size", "weight"],
        ("--drop", "size,zip"): ["weight"],
        ("--labels", "weight", "--labels", "kind"): ["size"],
        ("--categories",): ["size", "weight", "kind", "member"],
    }.items():
        assert dre("fit", "people.csv", "-o", "m.safetensors", "--force", *options, *SHORT) == 0
        assert DRE.load("m.safetensors").feature_names_in_.tolist() == features
        assert dre("transform", "m.safetensors", "people.csv", "-o", "y.npy", "--force") == 0
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--force", "--columns", "height", *SHORT) == 2


def test_missing_values_are_refused_left_out_or_filled(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(gaps=3)
    assert dre("fit", "people.csv", "-o", "m.safetensors", *SHORT) == 2
    told = capsys.readouterr().err
    assert "3 in 'size', the first in line 2, column 4 ('size')" in told
    assert "Pass --missing drop, --missing mean or --missing median." in told
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.csv", *SHORT) == 0
    lines = read("y.csv")
    assert len(lines) == N + 1
    assert [line[1:] for line in lines[1:4]] == [["nan", "nan"]] * 3
    assert all(line[1] != "nan" for line in lines[4:])
    assert dre("transform", "m.safetensors", "people.csv", "-o", "z.npy") == 2
    assert dre("transform", "m.safetensors", "people.csv", "-o", "z.npy", "--missing", "drop") == 0
    assert np.isnan(np.load("z.npy")).all(1).tolist() == [True] * 3 + [False] * (N - 3)
    assert dre("fit", "people.csv", "-o", "n.safetensors", "--missing", "median", "--embedding", "w.npy", *SHORT) == 0
    assert list(DRE.load("n.safetensors").fill_values_) == ["size", "weight"]  # other tables may lack what this one has
    assert dre("transform", "n.safetensors", "people.csv", "-o", "v.npy") == 0
    np.testing.assert_allclose(np.load("w.npy"), np.load("v.npy"), atol=1e-4 * np.ptp(np.load("w.npy")))


def test_missing_labels_are_no_error(dre: Run) -> None:
    write_table()
    text = Path("people.csv").read_text().replace(",a,", ",,")
    Path("people.csv").write_text(text)
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--labels", "kind", *SHORT) == 0
    assert dre("explore", "m.safetensors", "people.csv", "--color", "kind") == 0


def test_points_and_rows_are_matched_by_name(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_table()
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--embedding", "y.csv", *SHORT) == 0
    head, *lines = read("y.csv")
    with open("shuffled.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *reversed(lines)])
    scores = []
    for name in ("y.csv", "shuffled.csv"):
        capsys.readouterr()
        assert dre("evaluate", "people.csv", name) == 0
        scores.append(capsys.readouterr().out)
    assert scores[0] == scores[1]
    with open("others.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *([f"9{line[0]}", *line[1:]] for line in lines)])
    assert dre("evaluate", "people.csv", "others.csv") == 2
    told = capsys.readouterr().err
    assert "has no point for 60 of the 60 rows of DATA, since all names differ" in told
    assert f"(DATA: {lines[0][0]!r}, others.csv: '9{lines[0][0]}')" in told
    with open("some.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *lines[20:]])
    assert dre("evaluate", "people.csv", "some.csv") == 2
    listed = ", ".join(line[0] for line in lines[:3])
    assert f"has no point for 20 of the 60 rows of DATA: {listed}, … (20 in total)" in capsys.readouterr().err


def test_a_map_without_names_is_said_to_be_matched_by_position(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_table()
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--embedding", "y.csv", *SHORT) == 0
    assert dre("transform", "m.safetensors", "people.csv", "-o", "y.npy") == 0
    by_position = "dre: matched by position: y.npy has no names of rows"
    for arguments, expected in (
        (["evaluate", "people.csv", "y.npy"], True),
        (["evaluate", "people.csv", "y.csv"], False),
        (["explore", "m.safetensors", "people.csv", "--beside", "y.npy"], True),
    ):
        capsys.readouterr()
        assert dre(*arguments) == 0
        assert (by_position in capsys.readouterr().err.splitlines()) == expected


@pytest.mark.parametrize("command", ["explore", "plot"])
def test_a_model_in_the_place_of_data_is_recognized(dre: Run, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert dre(command, "people.csv", "m.safetensors") == 2
    expected = f"m.safetensors is a model: MAP comes first, as in dre {command} m.safetensors people.csv"
    assert expected in capsys.readouterr().err


def test_rows_without_a_place_are_not_shown(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(gaps=3)
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.npy", *SHORT) == 0
    for command in (["evaluate", "people.csv", "m.safetensors"], ["explore", "m.safetensors", "people.csv"]):
        capsys.readouterr()
        assert dre(*command) == 0
        assert "3 of 60 rows lack values and are left out" in capsys.readouterr().err
    np.save("all.npy", np.random.default_rng(0).normal(size=(N, 2)))
    assert dre("evaluate", "people.csv", "all.npy") == 0  # a map of all rows, some of which can't be compared


def test_rows_in_other_units_are_a_caution(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    rows = RNG.normal(size=(N, 4))
    np.save("x.npy", rows)
    np.save("far.npy", 10 * rows)
    assert dre("fit", "x.npy", "-o", "m.safetensors", *SHORT) == 0
    for name, factor in (("x.npy", None), ("far.npy", "10")):
        capsys.readouterr()
        assert dre("transform", "m.safetensors", name, "-o", "y.npy", "--force") == 0
        assert (f"spread {factor} times as far" in capsys.readouterr().err) == (factor is not None)


def test_the_explorer_shows_what_was_filled_in_as_missing(dre: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(gaps=3)
    assert dre("fit", "people.csv", "-o", "m.safetensors", "--missing", "median", *SHORT) == 0
    import dre.explore as explorer

    shown = {}
    build = explorer.build_explorer

    def watched(*arguments: Any, **options: Any) -> Any:
        shown.update(options["metadata"])
        return build(*arguments, **options)

    monkeypatch.setattr(explorer, "build_explorer", watched)
    assert dre("explore", "m.safetensors", "people.csv") == 0
    assert np.isnan(shown["size"]).tolist() == [True] * 3 + [False] * (N - 3)
