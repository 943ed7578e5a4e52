"""``dre fit --watch`` and ``--tensorboard``: the page of the map remains, and wrong options are found at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE
from dre.explore.training_page import MARK

X = load_digits().data[:90].astype(np.float32)
LABELS = load_digits().target[:90]
SHORT = ["--schedule", "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", "--seed", "0", "--device", "cpu"]
Run = Callable[..., int]


@pytest.fixture
def table() -> str:
    names = [*(f"p{i}" for i in range(64)), "kind"]
    rows = [",".join([*map(str, row), f"digit {label}"]) for row, label in zip(X.tolist(), LABELS, strict=True)]
    Path("x.csv").write_text("\n".join([",".join(names), *rows]))
    return "x.csv"


def test_the_page_is_that_of_the_explorer_in_the_end(dre: Run, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("fit", table, "-o", "m.safetensors", "--watch", "--labels", "kind", *SHORT) == 0
    out, err = capsys.readouterr()
    assert "m.html follows the training: open it in a browser" in err
    assert "the page to m.html" in out
    assert sorted(each.name for each in Path().iterdir()) == ["m.html", "m.safetensors", "x.csv"]
    assert dre("explore", "m.safetensors", table, "-o", "again.html", "--color", "kind") == 0
    page, again = (Path(name).read_text() for name in ("m.html", "again.html"))

    def about(text: str) -> str:
        return text.partition('id="about">')[2].partition("</script>")[0].replace('"title": "again"', '"title": "m"')

    assert about(page) == about(again)


def test_a_page_of_another_name_is_written_and_opened(dre: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert dre("fit", table, "-o", "m.safetensors", "--page", "seen.html", "--open", "--drop", "kind", *SHORT) == 0
    assert Path("seen.html").exists()
    assert [each.rpartition("/")[2] for each in opened] == ["seen.html"]


def test_the_model_is_that_of_a_fit_that_nobody_watches(dre: Run, table: str) -> None:
    for name, options in (("a", []), ("b", ["--watch", "--tensorboard", "runs"])):
        assert dre("fit", table, "-o", f"{name}.safetensors", "--labels", "kind", *SHORT, *options) == 0
    a, b = (DRE.load(f"{name}.safetensors").transform(X) for name in ("a", "b"))
    assert np.array_equal(a, b)


def test_a_fit_that_fails_after_the_training_leaves_a_page_that_says_so(
    dre: Run, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(DRE, "save", fail)
    assert dre("fit", table, "-o", "m.safetensors", "--watch", "--labels", "kind", *SHORT) == 1
    assert "The command failed after the training: OSError the disk is full" in Path("m.html").read_text()
    assert not list(Path().glob("*.training.js"))


def test_ctrl_c_between_the_training_and_the_model_ends_the_page(dre: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dre.model.fitting.embed", interrupt)
    assert dre("fit", table, "-o", "m.safetensors", "--watch", "--labels", "kind", *SHORT) == 130
    page = Path("m.html").read_text()
    assert "Ctrl-C stopped the command after the training" in page
    assert '"follow": null' in page
    assert sorted(each.name for each in Path().iterdir()) == ["m.html", "x.csv"]


def test_after_ctrl_c_in_the_scores_the_page_says_that_the_model_is_saved(
    dre: Run, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dre.cli.fit.summary", interrupt)
    assert dre("fit", table, "-o", "m.safetensors", "--watch", "--labels", "kind", *SHORT) == 130
    page = Path("m.html").read_text()
    assert "The model is saved; Ctrl-C ended the making of this page." in page
    assert "failed" not in page.partition('id="about"')[2].partition("</script>")[0]
    assert Path("m.safetensors").exists()


def test_too_many_points_for_a_browser_become_a_sample(dre: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.cli.watch.MAX_POINTS", 50)
    monkeypatch.setattr("dre.explore.watch.MOST_ROWS", 40)
    assert dre("fit", table, "-o", "m.safetensors", "--watch", "--labels", "kind", *SHORT) == 0
    assert "The page has 40 of 90 rows." in Path("m.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--open"], "--open opens the page of --watch: pass --watch too"),
        (["--watch", "--n-components", "1"], "--watch shows maps of two or three components, not of 1"),
        (["--page", "map.csv"], "map.csv: a page is an .html file"),
        (["--page", "nowhere/map.html"], "nowhere is not a writable folder"),
        (["--page", "there.html"], "there.html exists: pass --force"),
        (["--tensorboard", "there.html"], "--tensorboard there.html: this is a file"),
        (["--tensorboard", "there.html/runs"], "there.html is not a writable folder; choose another one"),
        (["--tensorboard", "used"], "--tensorboard used: the folder has the events of another fit"),
    ],
)
def test_wrong_options_are_found_before_the_rows_are_read(
    options: list[str], said: str, dre: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.html").write_text("mine")
    Path("used").mkdir()
    Path("used/events.out.tfevents.1").write_text("")
    assert dre("fit", "no-such-file.csv", "-o", "m.safetensors", *options) == 2
    assert said in capsys.readouterr().err


def test_tensorboard_gets_the_labels(dre: Run, table: str) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs the extra")
    assert dre("fit", table, "-o", "m.safetensors", "--tensorboard", "runs/a", "--labels", "kind", *SHORT) == 0
    tags = accumulator.EventAccumulator("runs/a").Reload().Tags()
    assert {"scores/trustworthiness", "scores/1-NN, kind"} <= set(tags["scalars"])
    assert "map/stage 1" in tags["images"]


def test_after_a_kill_the_same_command_goes_on(dre: Run, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A kill before the first checkpoint leaves a page, its script and events."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs the extra")
    Path("m.html").write_text("the page of the fit that was killed")
    Path("m.training.js").write_text(MARK)
    Path("runs").mkdir()
    Path("runs/events.out.tfevents.1").write_text("")
    options = ["--watch", "--tensorboard", "runs", "--checkpoint", "c", "--labels", "kind", *SHORT]
    assert dre("fit", table, "-o", "m.safetensors", *options) == 2
    assert dre("fit", table, "-o", "m.safetensors", "--resume", *options) == 0, capsys.readouterr().err
    assert "trustworthiness" in Path("m.html").read_text()
    assert not Path("m.training.js").exists()
    assert not Path("runs/events.out.tfevents.1").exists()
    assert "scores/1-NN, kind" in accumulator.EventAccumulator("runs").Reload().Tags()["scalars"]
