"""The help of every command, with examples that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from dre.cli import app

Run = Callable[..., int]
COMMANDS = [command.callback.__name__ for command in app().registered_commands if command.callback is not None]


@pytest.fixture
def page(dre: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def page(*arguments: str, columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert dre(*arguments, "--help") == 0
        return capsys.readouterr().out

    return page


def examples(command: str) -> list[str]:
    """As they stand in the docstring, one a line."""
    (found,) = (each.callback for each in app().registered_commands if each.callback and each.callback.__name__ == command)
    return re.findall(r"^\s*- `(dre .*)`$", found.__doc__ or "", re.M)


def test_the_first_page_has_every_command_in_a_line_how_to_start_and_the_exit_codes(page: Callable[..., str]) -> None:
    told = page()
    for panel in ("Fit and transform", "Visualize", "Evaluate"):
        assert panel in told
    for command in COMMANDS:
        assert re.search(rf"^│ {command} +\S", told, re.M)
    for start in ("dre demo", "dre fit cells.csv -o cells.safetensors", "dre transform"):
        assert f"• {start}" in told
    assert "0 success; 1 the run failed; 2 usage error" in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_that_are_easy_to_read(page: Callable[..., str], command: str, columns: int) -> None:
    told = page(command, columns=columns)
    assert examples(command)
    for example in examples(command):
        fits = len(example) < columns - 5
        assert f"• {example} " in (told if fits else " ".join(told.split()))
    assert max(map(len, told.splitlines())) <= columns


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_have_only_options_that_are_there(page: Callable[..., str], command: str) -> None:
    told = page(command, columns=200)
    for example in examples(command):
        for word in shlex.split(example)[2:]:
            if word.startswith("-"):
                assert re.search(rf"{word}\b", told.partition("Options")[2]), f"{example}: {word}"


def test_without_a_command_the_first_page_is_shown(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    dre()
    shown = capsys.readouterr()
    assert "Start here" in shown.out + shown.err
