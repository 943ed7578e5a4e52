"""Tables with text, categories and gaps on the command line, and models that go from there to Python and back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dre import DRE
from dre.cli.map import color_values, load_map, open_rows
from dre.io.readers import ReadOptions

PENGUINS = Path(__file__).parents[1] / "data" / "penguins.csv"
SHORT = ["--schedule", "x: gaussian(10) -> kl * 2", "--encoder", "mlp(8, depth=1)", "--seed", "0", "--device", "cpu"]
FIT = ["--categories", "--labels", "species", *SHORT]
Run = Callable[..., int]


@pytest.fixture
def penguins(dre: Run) -> pd.DataFrame:
    shutil.copy(PENGUINS, "penguins.csv")
    return pd.read_csv("penguins.csv")


def test_a_model_of_the_command_line_reads_a_data_frame(dre: Run, penguins: pd.DataFrame) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "median", "--embedding", "y.npy", *FIT) == 0
    model = DRE.load("m.safetensors")
    assert model.feature_names_in_.tolist() == penguins.columns[1:].tolist()
    np.testing.assert_allclose(model.transform(penguins), np.load("y.npy"), atol=1e-4)
    python = DRE(schedule=SHORT[1], encoder=SHORT[3], missing="median", random_state=0, device="cpu")
    python.fit(penguins.drop(columns="species"))
    np.testing.assert_array_equal(python.embedding_, np.load("y.npy"))
    assert python.preparation_.state() == model.preparation_.state()
    assert python.get_params() == model.get_params()


def test_a_model_of_numbers_fills_the_gaps_of_a_data_frame_as_the_file_did(dre: Run, penguins: pd.DataFrame) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", "--embedding", "y.npy", *SHORT) == 0
    model = DRE.load("m.safetensors")
    numbers = penguins[model.feature_names_in_]
    frame = pl.from_pandas(numbers)
    for each in (numbers, frame, frame.with_columns(pl.col("bill_length_mm").fill_null(float("nan")))):
        np.testing.assert_allclose(model.transform(each), np.load("y.npy"), atol=1e-4)


def test_a_model_of_python_reads_a_file(dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    model = DRE(schedule=SHORT[1], encoder=SHORT[3], missing="median", random_state=0, device="cpu")
    model.fit(pl.from_pandas(penguins).drop("species")).save("m.safetensors")
    expected = model.transform(penguins)
    pl.read_csv("penguins.csv", null_values="NA").write_parquet("penguins.parquet")
    for data in ("penguins.csv", "penguins.parquet"):
        assert dre("transform", "m.safetensors", data, "-o", "y.npy", "--force") == 0
        np.testing.assert_array_equal(np.load("y.npy"), expected)
    assert dre("info", "m.safetensors") == 0
    told = capsys.readouterr().out
    assert "numbers: bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g, year" in told
    assert "categories of island: Biscoe, Dream, Torgersen" in told
    assert "missing values are filled in: island Biscoe, bill_length_mm 44.45" in told


def test_what_is_done_is_said_and_the_scores_are_those_of_the_fit(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", *FIT) == 0
    fitted = capsys.readouterr()
    assert "encoded as categories: island, sex; the numbers are divided by their standard deviations" in fitted.err
    assert "missing values in 11 of 344 rows are filled in: bill_length_mm 43.92" in fitted.err
    assert dre("evaluate", "penguins.csv", "m.safetensors", "--labels", "island", "-o", "s.json") == 0
    told = capsys.readouterr()
    assert "features" not in told.err
    (line,) = (line for line in fitted.out.splitlines() if line.startswith("trustworthiness"))
    assert line[:-1].split()[-1] in told.out


def test_a_gap_of_a_feature_is_no_class_of_the_labels(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", "--embedding", "y.csv", *FIT) == 0
    for map_, count in (("m.safetensors", 11), ("y.csv", 9)):  # two of them lack all numbers, too
        capsys.readouterr()
        assert dre("evaluate", "penguins.csv", map_, "--labels", "sex") == 0
        assert f"dre: {count} rows have no label and are not scored" in capsys.readouterr().err
    loaded = load_map("m.safetensors", *open_rows("m.safetensors", "penguins.csv", ReadOptions(missing="drop")))
    assert set(color_values("sex", loaded)[1].tolist()) == {"female", "male", ""}


def test_gaps_are_refused_with_their_places_or_left_out(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", *FIT) == 2
    told = capsys.readouterr().err
    assert "11 in 'sex', the first in line 5, column 7 ('sex'); 2 in 'bill_length_mm'" in told
    assert "Pass --missing drop, --missing mean or --missing median." in told
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.npy", *FIT) == 0
    assert np.isnan(np.load("y.npy")).any(1).tolist() == penguins.isna().any(axis=1).tolist()
    assert dre("transform", "m.safetensors", "penguins.csv", "-o", "z.npy") == 2
    assert "11 in 'sex', the first in line 5" in capsys.readouterr().err
    assert dre("transform", "m.safetensors", "penguins.csv", "-o", "z.npy", "--missing", "drop") == 0
    np.testing.assert_allclose(np.load("z.npy"), np.load("y.npy"), atol=1e-4)
    capsys.readouterr()
    assert dre("transform", "m.safetensors", "penguins.csv", "-o", "w.npy", "--missing", "median") == 0
    assert "are filled in by the median of these rows, not of the fit" in capsys.readouterr().err
    assert np.isfinite(np.load("w.npy")).all()


def test_a_file_that_lacks_a_column_is_refused_by_its_name(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", *FIT) == 0
    penguins.drop(columns="sex").to_csv("less.csv", index=False)
    penguins.assign(body_mass_g=["light"] * 172 + ["heavy"] * 172).to_csv("words.csv", index=False)
    np.save("rows.npy", np.zeros((5, 10)))
    for data, message in {
        "less.csv": "less.csv lacks the column 'sex' of the model",
        "words.csv": "the column 'body_mass_g' should hold numbers, but it is one of kind 'text'",
        "rows.npy": "DATA is no table, and the model reads columns by name: island",
    }.items():
        capsys.readouterr()
        assert dre("transform", "m.safetensors", data, "-o", "y.npy") == 2
        assert message in capsys.readouterr().err
    assert not Path("y.npy").exists()


def test_unknown_categories_are_counted(dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", *FIT) == 0
    penguins.head(9).assign(island="Moon").to_csv("moon.csv", index=False)
    capsys.readouterr()
    assert dre("transform", "m.safetensors", "moon.csv", "-o", "y.npy") == 0
    assert "9 rows have values of 'island' that the fit did not have ('Moon')" in capsys.readouterr().err


def test_the_page_shows_the_columns_as_they_are(dre: Run, penguins: pd.DataFrame) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "mean", *FIT) == 0
    assert dre("explore", "m.safetensors", "penguins.csv", "-o", "map.html", "--color", "sex") == 0
    page = Path("map.html").read_text(encoding="utf-8")
    for column in penguins.columns:
        assert f'"name": "{column}"' in page
    assert '"name": "sex=male"' not in page
    assert dre("plot", "m.safetensors", "penguins.csv", "-o", "map.png", "--color", "body_mass_g") == 0


def test_units_are_kept_on_request(dre: Run, penguins: pd.DataFrame) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "drop", "--no-standardize", *FIT) == 0
    found = {each.name: each.scale for each in DRE.load("m.safetensors").preparation_.encodings}
    assert found["body_mass_g"] == 1


def test_several_files_are_prepared_as_the_first(dre: Run, penguins: pd.DataFrame) -> None:
    Path("parts").mkdir()
    shuffled = penguins.sample(frac=1, random_state=0)
    shuffled.head(200).to_csv("parts/part-0.csv", index=False)
    shuffled.tail(144).to_csv("parts/part-1.csv", index=False)
    assert dre("fit", "parts", "-o", "m.safetensors", "--missing", "mean", "--embedding", "y.npy", *FIT) == 0
    shuffled.to_csv("whole.csv", index=False)
    assert dre("transform", "m.safetensors", "whole.csv", "-o", "z.npy") == 0
    np.testing.assert_allclose(np.load("y.npy"), np.load("z.npy"), atol=1e-4)


def test_a_german_table_is_read_as_a_person_reads_it(dre: Run) -> None:
    rng = np.random.default_rng(0)
    lines = ["Größe;Gewicht;Region;Mitglied;PLZ"]
    for i in range(150):
        size, weight = f"{rng.normal(170, 9):.1f}".replace(".", ","), f"{rng.normal(70, 9):.2f}".replace(".", ",")
        region = ["Köln", "München", "Zürich", "k.A."][i % 4] if i else "Ägypten"  # which occurs once
        lines.append(f"{size};{weight if i % 5 else ''};{region};{['ja', 'nein', ''][i % 3]};0{1000 + i}")
    Path("kunden.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    assert dre("fit", "kunden.csv", "-o", "m.safetensors", "--categories", "--missing", "median", *SHORT) == 0
    model = DRE.load("m.safetensors")
    kinds = {each.name: (each.kind, each.categories) for each in model.preparation_.encodings}
    assert kinds == {
        "Größe": ("number", ()),
        "Gewicht": ("number", ()),
        "Region": ("category", ("Köln", "München", "Zürich", "k.A.", "Ägypten")),
        "Mitglied": ("boolean", ()),
    }
    frame = pd.read_csv("kunden.csv", sep=";", decimal=",", encoding="latin-1")
    assert dre("transform", "m.safetensors", "kunden.csv", "-o", "y.npy") == 0
    np.testing.assert_array_equal(model.transform(frame), np.load("y.npy"))


def test_coordinates_are_scored_against_the_columns_of_the_fit(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.csv", *FIT) == 0
    told = []
    for more in (["m.safetensors"], ["y.csv", "--categories"]):
        capsys.readouterr()
        assert dre("evaluate", "penguins.csv", *more, "--labels", "species") == 0
        told.append(capsys.readouterr().out.splitlines())
    assert told[0][0] == told[1][0] == "333 rows × 10 → 2, k = 7, standard protocol"
    scores = [[line.split()[:-1] for line in lines if line.startswith(("trust", "contin", "shep"))] for lines in told]
    assert [[name, value] for name, value, *_ in scores[0]] == [[name, value] for name, value, *_ in scores[1]]
    assert dre("explore", "y.csv", "penguins.csv", "--categories", "-o", "map.html") == 0
    page = Path("map.html").read_text(encoding="utf-8")
    assert '"name": "sex"' in page
    assert '"name": "sex=male"' not in page


def test_categories_and_decimals_are_for_the_columns_of_data(
    dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.csv", *FIT) == 0
    for arguments, message in {
        ("evaluate", "penguins.csv", "m.safetensors", "--categories"): "m.safetensors is a model, which knows its columns",
        ("plot", "y.csv", "--categories"): "--categories is for the columns of DATA: add DATA after MAP",
        ("explore", "y.csv", "--decimal", ","): "--decimal is for the columns of DATA: add DATA after MAP",
        ("plot", "y.csv", "penguins.csv", "--decimal", ";"): "--decimal ;",
    }.items():
        capsys.readouterr()
        assert dre(*arguments) == 2
        assert message in capsys.readouterr().err


def test_a_table_that_is_fitted_with_a_decimal_comma_is_shown_with_it(dre: Run) -> None:
    rng = np.random.default_rng(0)
    lines = ["a,b,c", *(",".join(f'"{value:.2f}"'.replace(".", ",") for value in row) for row in rng.normal(size=(60, 3)))]
    Path("x.csv").write_text("\n".join(lines))
    assert dre("fit", "x.csv", "-o", "m.safetensors", "--decimal", ",", *SHORT) == 0
    for command in (
        ["evaluate", "x.csv", "m.safetensors"],
        ["plot", "m.safetensors", "x.csv"],
        ["explore", "m.safetensors", "x.csv"],
    ):
        assert dre(*command) == 2
        assert dre(*command, "--decimal", ",") == 0


def test_a_single_row_is_counted_in_the_singular(dre: Run, penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("fit", "penguins.csv", "-o", "m.safetensors", "--missing", "drop", *FIT) == 0
    some = penguins.dropna().head(20)
    some.head(1).to_csv("one.csv", index=False)
    some.assign(sex=["", *some.sex[1:]]).to_csv("gap.csv", index=False)
    capsys.readouterr()
    assert dre("transform", "m.safetensors", "one.csv", "-o", "y.csv") == 0
    assert "Wrote the embedding of 1 row to y.csv." in capsys.readouterr().out
    assert dre("transform", "m.safetensors", "gap.csv", "-o", "z.csv", "--missing", "drop") == 0
    assert "Wrote the embedding of 19 rows to z.csv; 1 row lacks values and is NaN." in capsys.readouterr().out
    assert dre("transform", "m.safetensors", "gap.csv", "-o", "w.csv", "--missing", "median") == 0
    capsys.readouterr()
    assert dre("evaluate", "gap.csv", "w.csv", "--labels", "sex", "-k", "2") == 0
    assert "1 row has no label and is not scored" in capsys.readouterr().err
