"""``dre explore``: pages of models and of coordinates, and usage errors."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE
from dre.cli.options import name_options

X = load_digits().data[:90].astype(np.float32)
LABELS = load_digits().target[:90]
Run = Callable[..., int]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "digits.safetensors"
    schedule = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
    DRE(schedule=schedule, random_state=0, device="cpu", verbose=False).fit(X).save(path)
    return path


@pytest.fixture
def table(dre: Run) -> str:
    """As a file in the folder in which the command runs."""
    lines = [",".join([*(f"p{i}" for i in range(64)), "digit"])]
    lines += [",".join([*(f"{value:g}" for value in row), f"d{label}"]) for row, label in zip(X, LABELS, strict=True)]
    Path("digits.csv").write_text("\n".join(lines) + "\n")
    return "digits.csv"


def about(path: str) -> dict:
    found = re.search(r'id="about">(.*)</script>', Path(path).read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


def test_a_model_and_its_data_give_every_stage_with_its_scores(dre: Run, model: Path, table: str) -> None:
    assert dre("explore", model, table, "-o", "map.html", "--image-shape", "8x8", "--device", "cpu") == 0
    told = about("map.html")
    assert [stage["title"] for stage in told["maps"][0]["stages"]] == ["stage 0 · x", "stage 1 · h1"]
    assert [name for name, _ in told["maps"][0]["stages"][0]["scores"]] == ["trustworthiness", "continuity", "1-NN, digit"]
    assert [column["name"] for column in told["columns"]] == ["digit", "trust"]
    assert told["color"] == "digit"
    assert told["thumbnails"]["height"] == 8
    assert told["n"] == 90


def test_coordinates_alone_are_enough(dre: Run) -> None:
    Path("coordinates.csv").write_text("dre1,dre2,type\n" + "".join(f"{i},{i * i},{'ab'[i % 2]}\n" for i in range(30)))
    assert dre("explore", "coordinates.csv") == 0
    told = about("coordinates.html")
    assert [column["name"] for column in told["columns"]] == ["type"]
    assert [name for name, _ in told["maps"][0]["stages"][0]["scores"]] == ["1-NN, type"]


def test_coordinates_with_their_data_have_trust(dre: Run, model: Path, table: str) -> None:
    assert dre("transform", model, table, "-o", "coordinates.npy") == 0
    assert dre("explore", "coordinates.npy", table, "-o", "p.html", "--color", "trust") == 0
    assert about("p.html")["color"] == "trust"
    assert dre("explore", "coordinates.npy", table, "-o", "q.html", "--no-trust") == 0
    assert [column["name"] for column in about("q.html")["columns"]] == ["digit"]


def test_rows_keep_their_numbers_in_the_file_if_others_are_dropped(dre: Run) -> None:
    lines = [f"{i},{i * i if i % 10 else ''},{'ab'[i % 2]}" for i in range(40)]
    Path("coordinates.csv").write_text("dre1,dre2,type\n" + "\n".join(lines) + "\n")
    assert dre("explore", "coordinates.csv") == 0
    assert about("coordinates.html")["n"] == 36
    found = re.search(r'id="row-numbers">(.*)</script>', Path("coordinates.html").read_text(encoding="utf-8"))
    assert found is not None
    planes = np.frombuffer(gzip.decompress(base64.b64decode(found[1])), np.uint8).reshape(4, -1)
    assert np.ascontiguousarray(planes.T).view("<u4").ravel().tolist() == [i for i in range(40) if i % 10]


def test_nothing_is_written_over_unless_forced(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("coordinates.npy", np.zeros((30, 2)))
    Path("coordinates.html").write_text("mine")
    assert dre("explore", "coordinates.npy") == 2
    assert "--force" in capsys.readouterr().err
    assert Path("coordinates.html").read_text() == "mine"
    assert dre("explore", "coordinates.npy", "--force") == 0
    assert Path("coordinates.html").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["coordinates.npy", "-o", "map.png"], ".html"),
        (["coordinates.npy", "--image-shape", "8by8"], "HEIGHTxWIDTH"),
        (["coordinates.npy", "--color", "age"], "neither a column"),
        (["wide.npy"], "dre transform"),
        (["coordinates.npy", "wide.npy", "--image-shape", "2x3"], "2 × 3"),
        (["coordinates.npy", "--atlas", "-o", "map.html"], "drop -o"),
        (["coordinates.npy", "digits"], "30 points but DATA has 1,347 rows"),
        (
            ["coordinates.npy", "--with-model"],
            "--with-model needs a model as MAP, a .safetensors file of `dre fit`; coordinates.npy",
        ),
        (["coordinates.npy", "--with-model", "--atlas"], "drop one of them"),
    ],
)
def test_wrong_use_is_told_with_its_remedy(
    dre: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    np.save("coordinates.npy", np.zeros((30, 2)))
    np.save("wide.npy", np.zeros((30, 9)))
    assert dre("explore", *arguments) == 2
    told = capsys.readouterr().err
    assert says in told
    assert len(told.strip().splitlines()) <= 2
    assert not list(Path().glob("*.html"))


def test_a_model_needs_its_data(dre: Run, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("explore", model) == 2
    assert "add DATA" in capsys.readouterr().err


def test_an_atlas_that_is_not_installed_is_told_of(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    np.save("coordinates.npy", np.zeros((30, 2)))
    assert dre("explore", "coordinates.npy", "--atlas") == 1
    assert "pip install embedding-atlas" in capsys.readouterr().err


def test_an_atlas_is_handed_coordinates_and_columns(dre: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a command of its name that says what it was given: the real one is too heavy to install here."""
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet
    Path("bin").mkdir()
    script = Path("bin/embedding-atlas")
    read = "import sys; from pyarrow import parquet; t = parquet.read_table(sys.argv[1]); "
    script.write_text(f"#!{sys.executable}\n{read}open('told', 'w').write(repr((t.column_names, t.num_rows, sys.argv[2:])))\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').resolve()}{os.pathsep}{os.environ['PATH']}")
    Path("coordinates.csv").write_text("dre1,dre2,type\n" + "".join(f"{i},{i * i},{'ab'[i % 2]}\n" for i in range(30)))
    assert dre("explore", "coordinates.csv", "--atlas") == 0
    assert Path("told").read_text() == repr((["dre1", "dre2", "type"], 30, ["--x", "dre1", "--y", "dre2"]))


def test_the_features_of_a_narrow_table_can_color_the_points(dre: Run) -> None:
    table = np.column_stack([X[:, 20:24], LABELS])
    np.savetxt("t.csv", table, delimiter=",", header="a,b,c,d,digit", comments="", fmt="%g")
    short = ["--schedule", "x: gaussian(5) -> kl * 1", "--seed", "0", "--device", "cpu"]
    assert dre("fit", "t.csv", "-o", "m.safetensors", "--labels", "digit", *short) == 0
    assert dre("explore", "m.safetensors", "t.csv") == 0
    told = about("m.html")
    assert [column["name"] for column in told["columns"]] == ["d", "digit", "a", "b", "c", "trust"]  # d is constant
    assert told["color"] == "digit"
    assert dre("explore", "m.safetensors", "t.csv", "--color", "b", "--force") == 0
    assert about("m.html")["color"] == "b"


def test_labels_from_a_file_color_the_points(dre: Run) -> None:
    np.save("y.npy", np.random.default_rng(0).normal(size=(30, 2)))
    Path("kinds.txt").write_text("a\nb\n" * 15)
    assert dre("explore", "y.npy", "--color", "kinds.txt") == 0
    assert about("y.html")["color"] == "kinds.txt"


def test_numbers_beside_coordinates_that_are_classes_are_shown_as_such(dre: Run) -> None:
    Path("p.csv").write_text("dre1,dre2,digit\n" + "".join(f"{i},{i * i},{i % 3}\n" for i in range(30)))
    assert dre("explore", "p.csv") == 0
    told = about("p.html")
    assert told["columns"][0]["kind"] == "class"
    assert [name for name, _ in told["maps"][0]["stages"][0]["scores"]] == ["1-NN, digit"]


def test_rows_of_another_width_are_refused(dre: Run, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("narrow.npy", X[:, :5])
    assert dre("explore", model, "narrow.npy") == 2
    assert "rows of 5 values" in capsys.readouterr().err


def test_errors_of_the_library_name_the_options_of_the_command(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("coordinates.npy", np.zeros((30, 2)))
    np.save("images.npy", np.zeros((30, 8, 8)))
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert dre("explore", "coordinates.npy", "images.npy") == 2
    assert "--no-thumbnails" in capsys.readouterr().err
    monkeypatch.setattr("dre.explore.build.MAX_POINTS", 20)
    assert dre("explore", "coordinates.npy") == 1
    assert "use --atlas" in capsys.readouterr().err
    assert name_options("pass label_placement='none'") == "pass --label-placement none"


def test_the_model_becomes_a_part_of_the_page(dre: Run, model: Path, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--image-shape", "8x8", "--device", "cpu", "--no-trust", "--no-neighbors")
    assert dre("explore", model, table, "-o", "map.html", "--with-model", *options) == 0
    assert re.search(r"MB, of which the model takes \d+ kB\)|kB, of which the model takes \d+ kB\)", capsys.readouterr().out)
    told = about("map.html")["model"]
    assert told["width"] == 64
    del told["image"]["rows_first"]  # depends on the version of Pillow
    assert told["image"] == {"height": 8, "width": 8, "channels": 1, "layout": "hw", "low": 0, "high": 16}
    assert about("map.html")["maps"][0]["stages"][-1]["title"] == "stage 1 · h1"


def test_a_model_that_a_page_can_not_hold_is_refused_with_the_options_that_help(
    dre: Run, model: Path, table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dre.explore.embedded.MAX_BYTES", 1000)
    assert dre("explore", model, table, "-o", "map.html", "--with-model", "--device", "cpu") == 1
    told = capsys.readouterr().err
    assert "drop --with-model, fit a smaller encoder, such as mlp(128), or use dre export -o FILE.onnx" in told
    assert not Path("map.html").exists()


def coordinates(path: str, columns: int = 2, names: list[str] | None = None, n: int = 30) -> None:
    values = np.random.default_rng(0).normal(size=(n, columns))
    head = ",".join([*(["name"] if names else []), *(f"dre{i + 1}" for i in range(columns))])
    lines = [",".join([*([names[i]] if names else []), *(f"{value:.6f}" for value in row)]) for i, row in enumerate(values)]
    Path(path).write_text("\n".join([head, *lines]) + "\n")


def test_other_maps_stand_beside_the_first(dre: Run, model: Path, table: str) -> None:
    assert dre("transform", model, table, "-o", "umap.npy") == 0
    assert dre("explore", model, table, "-o", "m.html", "--beside", "umap.npy", "--beside", model, "--device", "cpu") == 0
    told = about("m.html")
    assert [each["title"] for each in told["maps"]] == ["digits", "umap", "digits 2"]
    assert [len(each["stages"]) for each in told["maps"]] == [2, 1, 2]
    scores = [dict(each["stages"][-1]["scores"]) for each in told["maps"]]
    assert scores[0]["trustworthiness"] == pytest.approx(scores[1]["trustworthiness"], abs=1e-6)


def test_the_rows_of_maps_side_by_side_are_matched_by_name(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"cell {i:02d}" for i in range(30)]
    coordinates("a.csv", names=names)
    lines = Path("a.csv").read_text().splitlines()
    Path("b.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert dre("explore", "a.csv", "--beside", "b.csv") == 0
    first, other = (each["stages"][0]["place"] for each in about("a.html")["maps"])
    assert np.array(first["matrix"]) == pytest.approx(np.array(other["matrix"]), abs=1e-5)  # the same map, in another order
    coordinates("c.csv", names=[f"mouse {i}" for i in range(30)])
    assert dre("explore", "a.csv", "--beside", "c.csv", "--force") == 2
    assert "c.csv has no point for 30 of the 30 rows of MAP" in capsys.readouterr().err
    coordinates("d.csv", n=20)
    assert dre("explore", "a.csv", "--beside", "d.csv", "--force") == 2
    assert "d.csv has 20 points but MAP has 30 rows" in capsys.readouterr().err
    assert dre("explore", "a.csv", "--beside", "m.safetensors", "--force") == 2
    assert "add DATA" in capsys.readouterr().err


def test_rows_without_names_are_matched_by_their_positions_in_the_files(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    points, rows = np.random.default_rng(0).normal(size=(30, 2)), np.arange(60.0).reshape(30, 2) ** 2
    np.save("whole.npy", points)
    np.save("a.npy", np.where(np.arange(30)[:, None] == 5, np.nan, points))
    np.save("b.npy", np.where(np.arange(30)[:, None] == 9, np.nan, points))
    assert dre("explore", "a.npy", "--beside", "whole.npy") == 0
    first, other = (each["stages"][0]["place"] for each in about("a.html")["maps"])
    assert np.array(first["matrix"]) == pytest.approx(np.array(other["matrix"]), abs=1e-5)  # the same map, without row 5
    assert dre("explore", "a.npy", "--beside", "b.npy", "--force") == 2
    assert "b.npy has no point for 1 of the 29 rows of MAP, first for row 9" in capsys.readouterr().err
    np.save("rows.npy", np.where(np.arange(30)[:, None] == 9, np.nan, rows))
    assert dre("explore", "a.npy", "rows.npy", "--force") == 2
    assert "a.npy has no point for 1 of the 29 rows of DATA, first for row 5" in capsys.readouterr().err
    Path("y.txt").write_text("\n".join("ab"[i % 2] for i in range(30)))
    assert dre("explore", "a.npy", "--color", "y.txt", "--force") == 0
    assert about("a.html")["color"] == "y.txt"


def test_three_components_are_shown_and_more_are_told_of(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    coordinates("three.csv", 3)
    assert dre("explore", "three.csv") == 0
    assert about("three.html")["maps"][0]["components"] == 3
    assert "component" not in capsys.readouterr().err
    coordinates("five.csv", 5)
    assert dre("explore", "five.csv") == 0
    assert "five has 5 components; the page shows the first two." in capsys.readouterr().err
    told = about("five.html")
    assert told["maps"][0]["components"] == 2
    assert any("first two" in note for note in told["notes"])


def test_nearest_rows_are_kept_unless_told_not_to(dre: Run, model: Path, table: str) -> None:
    assert dre("explore", model, table, "-o", "m.html", "--device", "cpu") == 0
    assert about("m.html")["neighbors"] == {"k": 10, "type": "uint8"}
    assert dre("explore", model, table, "-o", "n.html", "--no-neighbors", "--device", "cpu") == 0
    assert about("n.html")["neighbors"] is None


def test_a_date_is_a_date_and_a_title_names_the_rows(dre: Run) -> None:
    rng = np.random.default_rng(0)
    lines = ["dre1,dre2,day,title,genre,score"]
    lines += [
        f"{rng.normal():.4f},{rng.normal():.4f},{1 + i % 28}.03.2026,Film {max(i, 1)},{'ab'[i % 2]},{i * i}" for i in range(60)
    ]
    Path("films.csv").write_text("\n".join(lines) + "\n")
    assert dre("explore", "films.csv") == 0
    told = about("films.html")
    assert {column["name"]: column["kind"] for column in told["columns"]} == {
        "day": "date", "title": "text", "genre": "class", "score": "number",
    }  # fmt: skip
    assert told["columns"][told["card"]["title"]]["name"] == "title"
    assert told["color"] == "genre"


def test_a_text_that_is_asked_for_colors_the_points(dre: Run) -> None:
    Path("p.csv").write_text("dre1,dre2,title\n" + "".join(f"{i},{i * i % 7},Film {i // 2}\n" for i in range(60)))
    assert dre("explore", "p.csv", "--color", "title") == 0
    assert about("p.html")["color"] == "title"


def test_the_column_that_names_the_rows_keeps_its_title(dre: Run) -> None:
    coordinates("a.csv", names=[f"c{i}" for i in range(30)])
    lines = ["patient,size,weight", *(f"c{i},{i * i % 11},{i * 7 % 13}" for i in range(30))]
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    assert dre("explore", "a.csv", "rows.csv") == 0
    told = about("a.html")
    assert (told["named"], told["namesTitle"]) == (True, "patient")
