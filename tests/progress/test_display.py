"""The display: a bar in a terminal, lines in a log, nothing where nobody asked; its thread ends with it."""

from __future__ import annotations

import re
import threading
import time

import pytest

from dre.progress import display
from dre.progress.activity import Activity, activity
from dre.progress.display import describe, progress_bar, say, shown


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stderr were a terminal, and time ran faster."""
    monkeypatch.setattr(display, "is_interactive", lambda: True)
    monkeypatch.setattr(display, "DELAY", 0.05)
    monkeypatch.setattr(display, "REDRAWN", 0.01)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if half a minute were a moment."""
    monkeypatch.setattr(display, "LINES", 0.1)


def display_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dre progress"]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_a_bar_with_the_time_left_and_clears_it(capsys):
    with progress_bar("reading", 10) as advance:
        for _ in range(10):
            time.sleep(0.03)
            advance()
    lines = [line.strip() for line in re.split(r"[\r\n]", capsys.readouterr().err)]
    assert any(re.fullmatch(r"reading \|.+\| \d\d:\d\d<\d\d:\d\d", line) for line in lines)
    assert lines[-1] == ""  # it is gone
    assert display_threads() == []


@pytest.mark.usefixtures("terminal")
def test_work_without_a_number_of_steps_shows_its_time(capsys):
    with shown(), activity("stage 0"), activity("finding neighbors"):
        time.sleep(0.3)
    assert re.search(r"\rstage 0: finding neighbors \d\d:\d\d", capsys.readouterr().err)


@pytest.mark.usefixtures("terminal")
def test_short_work_shows_nothing(capsys):
    with progress_bar("reading", 10) as advance:
        advance()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_a_line_is_printed_above_the_bar(capsys):
    with progress_bar("reading", 10):
        time.sleep(0.2)
        say("12 rows lack values")
        time.sleep(0.05)
    shown_lines = re.split(r"[\r\n]", capsys.readouterr().err)
    assert "12 rows lack values" in shown_lines


@pytest.mark.usefixtures("log")
def test_a_log_has_a_line_now_and_then_also_without_any_step(capsys):
    with shown(verbose=True), activity("stage 0 (x)") as stage:
        stage.total, stage.note, stage.scope = 40, "epoch 12 of 40, loss 1.23", "this stage"
        stage.done, stage.began = 12, time.monotonic() - 120
        time.sleep(0.35)
    written = capsys.readouterr().err
    lines = written.splitlines()
    assert len(lines) in (2, 3)
    assert re.fullmatch(
        r"dre: stage 0 \(x\), epoch 12 of 40, loss 1.23, 00:00 elapsed, about 04:40 left in this stage", lines[0]
    )
    assert not set(written) & set("\r\x1b|")
    assert display_threads() == []


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("verbose", [None, False])
def test_a_library_says_nothing_in_a_log(verbose, capsys):
    with progress_bar("reading", 10, verbose=verbose):
        assert display_threads() == []
        time.sleep(0.15)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("log")
def test_there_is_one_display_at_a_time(capsys):
    with shown(verbose=True), shown(verbose=True), progress_bar("reading", 2, verbose=True) as advance:
        advance()
        assert len(display_threads()) == 1
        time.sleep(0.15)
    assert capsys.readouterr().err.count("reading, 50%") == 1


@pytest.mark.usefixtures("log")
def test_the_display_ends_with_an_error_and_survives_a_closed_stderr(monkeypatch):
    with pytest.raises(KeyError), shown(verbose=True):
        raise KeyError

    def closed(*args, **kwargs):
        raise BrokenPipeError

    monkeypatch.setattr(display, "say", closed)
    with shown(verbose=True):
        time.sleep(0.25)
    assert display_threads() == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "working, 00:00 elapsed"), (61, "working, 01:01 elapsed"), (3725, "working, 1:02:05 elapsed")]
)
def test_something_is_said_when_nobody_told_what_is_done(seconds, text):
    assert describe([], seconds) == text


def test_a_share_is_told_where_there_is_no_note():
    work = Activity("finding neighbors", 4)
    work.advance()
    work.began -= 10
    assert (
        describe([Activity("stage 0 (x)"), work], 30) == "stage 0 (x): finding neighbors, 25%, 00:30 elapsed, about 00:30 left"
    )
