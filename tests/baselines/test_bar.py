"""The progress bar is drawn for those who watch, and counts what it is told."""

from __future__ import annotations

import time

import pytest

from dre.baselines.bar import bar


@pytest.mark.parametrize("verbose", [None, False])
def test_nothing_is_drawn_where_nobody_watches(verbose, capsys):
    with bar("pre-training", 3, verbose) as tick:
        for _ in range(3):
            tick()
    assert capsys.readouterr().err == ""


def test_a_bar_that_was_asked_for_is_drawn_once_the_work_has_taken_a_second(capsys, monkeypatch):
    monkeypatch.setattr("dre.baselines.bar.SECONDS_BETWEEN", {True: 0.0, False: 0.0})
    with bar("pre-training", 2, True) as tick:
        tick()
        time.sleep(1.05)
        tick()
    assert "pre-training: 100%" in capsys.readouterr().err
