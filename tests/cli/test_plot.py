"""``dre plot``: every kind of figure in every format, colors, options and usage errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

Run = Callable[..., int]
BEGINS = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
X = load_digits().images[:90].astype(np.float32)
LABELS = load_digits().target[:90]
SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dre import DRE

    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    DRE(schedule=SCHEDULE, random_state=0, device="cpu").fit(X.reshape(90, 64)).save(path)
    return path


@pytest.fixture
def here(dre: Run, model: Path) -> Run:
    """The command, in a folder with a model, its rows in several forms, and coordinates with columns beside them."""
    Path("m.safetensors").write_bytes(model.read_bytes())
    np.save("x.npy", X.reshape(90, 64))
    np.save("images.npy", X)
    np.save("y.npy", np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32))
    lines = [f"{i},{i % 7},{i / 7:.3f},{'' if i % 5 == 0 else 'ab'[i % 2]},row{i}" for i in range(90)]
    Path("coordinates.csv").write_text("\n".join(["dre1,dre2,depth,type,name", *lines]))
    head = ",".join([*(f"p{i}" for i in range(64)), "digit"])
    rows = [",".join([*map(str, row), str(y)]) for row, y in zip(X.reshape(90, 64).tolist(), LABELS, strict=True)]
    Path("x.csv").write_text("\n".join([head, *rows]))
    Path("labels.txt").write_text("\n".join(f"digit {y}" for y in LABELS))
    return dre


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were written."""
    kept: list[Any] = []
    real = Figure.savefig

    def spied(self: Any, *given: Any, **named: Any) -> None:
        kept.append(self)
        real(self, *given, **named)

    monkeypatch.setattr(Figure, "savefig", spied)
    return kept


@pytest.mark.parametrize("suffix", list(BEGINS))
@pytest.mark.parametrize("kind", ["map", "stages", "shepard", "distortion", "history"])
def test_every_kind_in_every_format(here: Run, kind: str, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert here("plot", "m.safetensors", "x.npy", "--kind", kind, "-o", f"a{suffix}") == 0
    assert Path(f"a{suffix}").read_bytes().startswith(BEGINS[suffix])
    assert f"a{suffix}" in capsys.readouterr().out


def test_the_picture_is_called_as_the_map_and_by_its_kind(here: Run) -> None:
    assert here("plot", "coordinates.csv") == 0
    assert here("plot", "m.safetensors", "--kind", "history") == 0
    assert Path("coordinates.png").exists()
    assert Path("m-history.png").exists()


def names(figure: Any) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_colors_are_a_column_of_the_map_a_file_or_none(here: Run, figures: list[Any]) -> None:
    assert here("plot", "coordinates.csv", "--color", "type", "--label-placement", "legend", "-o", "a.png") == 0
    assert names(figures[-1]) == {"a", "b", "no label"}
    assert here("plot", "coordinates.csv", "--color", "depth", "-o", "b.png") == 0
    assert [axis.get_ylabel() for axis in figures[-1].axes] == ["", "depth"], "a scale has a bar with its name"
    assert here("plot", "y.npy", "--color", "labels.txt", "--label-placement", "legend", "-o", "c.png") == 0
    assert names(figures[-1]) == {f"digit {i}" for i in range(10)}
    assert here("plot", "coordinates.csv", "--color", "none", "--label-placement", "legend", "-o", "d.png") == 0
    assert len(figures[-1].axes) == 1
    assert not names(figures[-1])


def test_without_a_color_it_is_the_first_column_that_tells_rows_apart(here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i},{i % 7},row{i},same,{'ab'[i % 2]}" for i in range(90)]
    Path("z.csv").write_text("\n".join(["dre1,dre2,id,all,type", *lines]))
    assert here("plot", "z.csv", "-o", "a.png") == 0
    assert "colored by type" in capsys.readouterr().out


def test_a_column_that_was_no_feature_is_none_in_the_picture_either(here: Run, figures: list[Any]) -> None:
    assert here("plot", "m.safetensors", "x.csv", "--color", "digit", "--label-placement", "legend", "-o", "a.png") == 0
    assert names(figures[-1]) == {str(i) for i in range(10)}


def test_a_column_that_is_a_feature_stays_one(here: Run, figures: list[Any]) -> None:
    Path("f.csv").write_text("\n".join(line.rpartition(",")[0] for line in Path("x.csv").read_text().splitlines()))
    assert here("plot", "m.safetensors", "f.csv", "--color", "p20", "-o", "a.png") == 0
    assert here("plot", "m.safetensors", "x.npy", "--color", "none", "-o", "b.png") == 0
    a, b = (np.sort(np.concatenate([dots.get_offsets() for dots in each.axes[0].collections]), axis=0) for each in figures)
    assert np.allclose(a, b, atol=1e-4)


def test_the_options_reach_the_picture(here: Run, figures: list[Any]) -> None:
    assert (
        here("plot", "y.npy", "images.npy", "--thumbnails", "--style", "dark", "--title", "t", "--size", 4, "-o", "a.png") == 0
    )
    axis = figures[-1].axes[0]
    assert axis.images
    assert axis.get_title() == "t"
    assert max(axis.get_window_extent().size) / figures[-1].dpi == pytest.approx(4, rel=0.02)
    assert sum(figures[-1].get_facecolor()[:3]) < 0.5


def test_stages_are_panels_with_scores(here: Run, figures: list[Any]) -> None:
    assert here("plot", "m.safetensors", "x.npy", "--kind", "stages", "--color", "labels.txt") == 0
    assert [axis.get_title() for axis in figures[-1].axes] == ["stage 0 · x", "stage 1 · h1"]
    assert all("1-NN" in axis.get_xlabel() and "trustworthiness" in axis.get_xlabel() for axis in figures[-1].axes)


def test_what_speaks_of_some_of_the_rows_says_so(here: Run, figures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("dre.plot.stages"), "MAX_SCORED", 50)
    assert here("plot", "y.npy", "x.npy", "--kind", "distortion", "-o", "a.png") == 0
    assert figures[-1].get_supxlabel() == "50 of 90 rows"
    assert here("plot", "y.npy", "x.npy", "--kind", "shepard", "-o", "b.png") == 0
    assert "of 50 of 90 rows" in figures[-1].axes[0].get_title()


WRONG = {
    "a kind that there is none of": (["m.safetensors", "x.npy", "--kind", "foo"], "--kind"),
    "a style that there is none of": (["y.npy", "--style", "gray"], "--style"),
    "names of another kind": (["y.npy", "--label-placement", "some"], "--label-placement"),
    "no map": ([], "MAP"),
    "a map that is not there": (["no.npy"], "no.npy"),
    "a model without rows": (["m.safetensors"], "m.safetensors rows.csv"),
    "stages of coordinates": (["y.npy", "--kind", "stages"], "dre fit"),
    "history of coordinates": (["y.npy", "--kind", "history"], "dre fit"),
    "distortion without rows": (["y.npy", "--kind", "distortion"], "DATA after MAP"),
    "other rows": (["y.npy", "short.npy", "--kind", "distortion"], "pass the embedded rows"),
    "a color from nowhere": (["coordinates.csv", "--color", "species"], "columns: depth, type"),
    "labels of other rows": (["y.npy", "--color", "short.txt"], "one label per row"),
    "thumbnails of vectors": (["y.npy", "x.npy", "--thumbnails"], "needs images"),
    "thumbnails of nothing": (["y.npy", "--thumbnails"], "DATA after MAP"),
    "another format": (["y.npy", "-o", "a.bmp"], ".png, .svg, .pdf"),
    "a folder that is not there": (["y.npy", "-o", "no/a.png"], "create it"),
    "a picture that is there": (["y.npy", "-o", "there.png"], "--force"),
    "a size that is none": (["y.npy", "--size", "0"], "--size"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong_use_ends_with_2_and_leaves_nothing(here: Run, capsys: pytest.CaptureFixture[str], case: str) -> None:
    arguments, remedy = WRONG[case]
    np.save("short.npy", X[:7].reshape(7, 64))
    Path("short.txt").write_text("a\nb")
    Path("there.png").write_text("mine")
    before = sorted(Path().iterdir())
    assert here("plot", *arguments) == 2
    told = capsys.readouterr()
    assert remedy in told.err + told.out
    assert "Traceback" not in told.err
    assert sorted(Path().iterdir()) == before
    assert Path("there.png").read_text() == "mine"


def test_force_writes_over_a_picture(here: Run) -> None:
    Path("there.png").write_text("mine")
    assert here("plot", "y.npy", "-o", "there.png", "--force") == 0
    assert Path("there.png").read_bytes().startswith(BEGINS[".png"])


def test_stopping_leaves_no_part_of_a_picture(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(self: object, part: Path, **named: object) -> None:
        Path(part).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", stopped)
    before = sorted(Path().iterdir())
    assert here("plot", "y.npy", "-o", "a.png") == 130
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(("kind", "panels"), [("map", 3), ("distortion", 6)])
def test_three_components_are_drawn_in_pairs_and_it_is_said(
    here: Run, figures: list[Any], capsys: pytest.CaptureFixture[str], kind: str, panels: int
) -> None:
    np.save("three.npy", np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32))
    assert here("plot", "three.npy", "x.npy", "--kind", kind, "-o", "a.png") == 0
    shown = {(axis.get_xlabel().partition("\n")[0], axis.get_ylabel()) for axis in figures[-1].axes[:panels]}
    assert shown == {("dre1", "dre2"), ("dre1", "dre3"), ("dre2", "dre3")}
    assert "its three components in pairs" in capsys.readouterr().out


def test_the_stages_of_three_components_are_drawn_in_pairs_and_scored_by_all(here: Run, figures: list[Any]) -> None:
    from dre import DRE
    from dre.metrics import trustworthiness

    rows = X.reshape(90, 64)
    model = DRE(n_components=3, schedule=SCHEDULE, random_state=0, device="cpu").fit(rows)
    model.save("three.safetensors")
    assert here("plot", "three.safetensors", "x.npy", "--kind", "stages", "-o", "a.png") == 0
    assert len(figures[-1].axes) == 6
    wanted = trustworthiness(rows, model.transform(rows))
    assert f"trustworthiness {wanted:.3f}" in figures[-1].axes[-1].get_xlabel()


def test_maps_of_one_or_many_components_and_images_of_three_are_refused(here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for count in (1, 5):
        header = ",".join(f"dre{i + 1}" for i in range(count))
        np.savetxt("many.csv", np.random.default_rng(0).normal(size=(90, count)), delimiter=",", header=header, comments="")
        assert here("plot", "many.csv", "-o", "a.png") == 2
        assert "two or three" in capsys.readouterr().err
    np.save("three.npy", np.random.default_rng(0).normal(size=(90, 3)))
    assert here("plot", "three.npy", "images.npy", "--thumbnails", "-o", "a.png") == 2
    assert "two components" in capsys.readouterr().err


def test_dates_and_names_of_any_script_print_no_warning(
    here: Run, figures: list[Any], capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    lines = [f"{i},{i % 7},2026-0{1 + i % 9}-11,{'細胞' if i % 2 else 'कोशिका'}" for i in range(90)]
    Path("z.csv").write_text("\n".join(["dre1,dre2,seen,種類", *lines]), encoding="utf-8")
    assert here("plot", "z.csv", "--color", "seen", "-o", "a.png", "--title", "Zellen 🧬") == 0
    bar = figures[-1].axes[1]
    assert bar.get_ylabel() == "seen"
    assert all(text.get_text().startswith("2026-") for text in bar.get_yticklabels())
    assert here("plot", "z.csv", "--color", "種類", "-o", "b.png") == 0
    assert not capsys.readouterr().err
    assert not [each for each in recwarn if "Glyph" in str(each.message)]


def test_the_color_is_what_a_person_would_choose(here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i},{i % 7},{i / 9},{'ab'[i % 2]},{'xyz'[i % 3]}" for i in range(90)]
    Path("z.csv").write_text("\n".join(["dre1,dre2,weight,site,species", *lines]))
    assert here("plot", "z.csv", "-o", "a.png") == 0
    assert "colored by species" in capsys.readouterr().out


def test_the_help_has_examples(here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert here("plot", "--help") == 0
    assert capsys.readouterr().out.count("dre plot ") >= 5
