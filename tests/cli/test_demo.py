"""The demo runs the commands that it prints, and leaves the files that it names."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from dre.cli import main
from dre.cli.data import open_data
from dre.cli.map import load_map

Run = Callable[..., int]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for a few epochs only: the quality of the map is not tested here."""
    steps = import_module("dre.cli.demo")._steps

    def fewer(folder: Path) -> list[tuple[str, list[str]]]:
        few = ["--schedule", "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"]
        return [(say, [*command, *few] if command[0] == "fit" else command) for say, command in steps(folder)]

    monkeypatch.setattr(import_module("dre.cli.demo"), "_steps", fewer)


def typed(told: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (dre .*)$", told, re.M)]


@pytest.mark.usefixtures("short")
def test_the_demo_leaves_a_model_an_embedding_and_a_figure_and_says_how_to_go_on(
    dre: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("demo") == 0
    told = capsys.readouterr().out
    folder = Path("dre-demo")
    assert [command[0] for command in typed(told)] == ["fit", "transform", "evaluate", "plot"]
    assert {path.name for path in folder.iterdir()} == {"digits.safetensors", "embedding.csv", "digits.png"}
    assert len(load_map("dre-demo/embedding.csv", open_data("digits:test")).embedding) == 450
    assert (folder / "digits.png").read_bytes()[:4] == b"\x89PNG"
    for hint in ("dre explore dre-demo/digits.safetensors digits:all", "dre fit your.csv", "dre --help"):
        assert hint in told


@pytest.mark.usefixtures("short")
def test_what_is_there_is_written_over_only_when_forced(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/digits.safetensors").write_text("mine")
    assert dre("demo", "-o", "mine") == 2
    assert "--force" in capsys.readouterr().err
    assert Path("mine/digits.safetensors").read_text() == "mine"
    assert dre("demo", "-o", "mine", "--force") == 0
    assert len(list(Path("mine").iterdir())) == 3


@pytest.mark.usefixtures("short")
def test_without_matplotlib_there_is_no_picture_and_it_is_said_how_to_get_one(
    dre: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("dre.cli.demo"), "find_spec", lambda name: None)
    assert dre("demo") == 0
    told = capsys.readouterr().out
    assert "pip install 'deep-recursive-embedding[plot]'" in told
    assert not Path("dre-demo/digits.png").exists()


def test_a_demo_that_stops_at_once_leaves_no_folder(dre: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dre.model.estimator.DRE.fit", stop)
    assert dre("demo") == 130
    assert not Path("dre-demo").exists()


@pytest.mark.slow
def test_the_demo_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dre", "demo"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
