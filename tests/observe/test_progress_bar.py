"""The progress bar appears in a terminal or on request, after a second of work."""

from __future__ import annotations

import time

import pytest

from dre.observe.progress import progress_bar


@pytest.mark.parametrize("verbose", [None, False])
def test_no_bar_outside_of_a_terminal(verbose, capsys):
    with progress_bar("pre-training", 3, verbose=verbose) as tick:
        for _ in range(3):
            tick()
    assert capsys.readouterr().err == ""


def test_a_requested_bar_appears_after_a_second(capsys, monkeypatch):
    monkeypatch.setattr("dre.observe.progress.SECONDS_BETWEEN", {True: 0.0, False: 0.0})
    with progress_bar("pre-training", 2, verbose=True) as tick:
        tick()
        time.sleep(1.05)
        tick()
    assert "pre-training: 100%" in capsys.readouterr().err
