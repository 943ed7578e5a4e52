"""While a command works: lines in a log, threads, messages that are said once, and CSV in a pipe."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dre import DRE
from dre.runtime.threads import thread_count

X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
SHORT = ["--schedule", "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", "--seed", "0", "--device", "cpu"]
COMPUTING = ("fit", "transform", "evaluate", "explore", "plot", "compare")
Run = Callable[..., int]


@pytest.fixture
def quick_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if half a minute were a moment."""
    monkeypatch.setattr("dre.progress.display.LINES", 0.2)


@pytest.fixture
def slow_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(self: object, model: object = None) -> None:
        time.sleep(0.02)

    monkeypatch.setattr("dre.optimizer.AdamState.update", slowly)


@pytest.mark.usefixtures("quick_lines", "slow_steps")
def test_a_log_gets_lines_about_the_fit_and_no_bar(dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--schedule", "x: gaussian(5) -> kl * 40", "--device", "cpu") == 0
    told = capfd.readouterr().err
    state = r"dre: stage 0 \(x\), epoch \d+ of 40, loss [\d.]+, [\d,]+ rows/s, 00:0\d elapsed, about 00:0\d left"
    assert any(re.fullmatch(state, line) for line in told.splitlines()), told
    assert not set(told) & set("\r\x1b|█")


@pytest.mark.usefixtures("quick_lines")
def test_a_file_that_is_read_for_long_is_named(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from dre.cli import data

    open_source = data.open_source

    def slowly(*given: object, **named: object) -> object:
        time.sleep(0.5)
        return open_source(*given, **named)

    monkeypatch.setattr(data, "open_source", slowly)
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", *SHORT) == 0
    assert "dre: reading x.npy, 00:00 elapsed" in capfd.readouterr().err


def test_a_short_fit_says_nothing_in_a_log(dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", *SHORT) == 0
    assert capfd.readouterr().err == ""


def test_verbose_prints_the_recipe_and_the_stages(dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--verbose", *SHORT) == 0
    told = capfd.readouterr().err
    assert "x: gaussian(5) -> kl * 2" in told
    assert "stage 1 done: 1 epochs" in told


@pytest.mark.parametrize("command", COMPUTING)
def test_every_command_that_computes_has_threads(command: str, dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert dre(command, "--help") == 0
    assert "--threads" in capfd.readouterr().out


def test_threads_are_limited_during_the_command_alone(dre: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fit(self: DRE, rows: object, **options: object) -> None:
        seen.append((thread_count(), torch.get_num_threads()))
        raise ValueError("enough")

    monkeypatch.setattr(DRE, "fit", fit)
    np.save("x.npy", X)
    torch.set_num_threads(2)
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--threads", 1) == 1
    assert seen == [(1, 1)]
    assert torch.get_num_threads() == 2
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--threads", 0) == 2


def test_the_result_does_not_depend_on_the_threads(dre: Run) -> None:
    np.save("x.npy", np.random.default_rng(0).normal(size=(700, 8)))
    torch.set_num_threads(2)
    for threads in (1, 2):
        options = ["--recipe", "fast", "--seed", 0, "--device", "cpu", "--threads", threads]
        assert dre("fit", "x.npy", "-o", f"{threads}.safetensors", "--embedding", f"{threads}.npy", *options) == 0
    np.testing.assert_array_equal(np.load("1.npy"), np.load("2.npy"))


def test_a_minus_prints_csv_and_messages_go_elsewhere(dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", *SHORT) == 0
    assert dre("transform", "m.safetensors", "x.npy", "-o", "y.csv") == 0
    capfd.readouterr()
    assert dre("transform", "m.safetensors", "x.npy", "-o", "-") == 0
    printed = capfd.readouterr()
    assert printed.out == Path("y.csv").read_text()
    assert printed.err == "dre: embedded 90 rows\n"
    assert np.loadtxt(io.StringIO(printed.out), delimiter=",", skiprows=1).shape == (90, 2)
    assert not Path("-").exists()


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(dre: Run) -> None:
    np.save("x.npy", np.resize(X[:, :3], (60_000, 3)).astype(np.float32))
    np.save("few.npy", X[:, :3])
    assert dre("fit", "few.npy", "-o", "m.safetensors", *SHORT) == 0
    program = [sys.executable, "-m", "dre", "transform", "m.safetensors", "x.npy", "-o", "-", "--threads", "1"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"dre1,dre2\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_warnings_of_libraries_are_not_shown_and_ours_once(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fit(self: DRE, rows: object, **options: object) -> None:
        for _ in range(2):
            warnings.warn("the rows are few", stacklevel=2)
        warnings.warn("deprecated", FutureWarning, stacklevel=2)
        warnings.warn("not writable (Triggered internally at tensor.cpp)", stacklevel=2)
        warnings.warn_explicit("no valid names", UserWarning, "/lib/sklearn/base.py", 1)
        raise ValueError("enough")

    monkeypatch.setattr(DRE, "fit", fit)
    np.save("x.npy", X)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert dre("fit", "x.npy", "-o", "m.safetensors") == 1
    assert capfd.readouterr().err == "dre: the rows are few\ndre: enough\n"


def test_notices_of_a_fit_are_not_repeated(dre: Run, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    lines = ["customer_id,zip,kind,size,weight"]
    for i in range(80):
        weight = "" if i == 7 else f"{rng.normal():.3f}"
        lines.append(f"c{i:03},0{1000 + i % 9},{'ab'[i % 2]},{rng.normal():.3f},{weight}")
    Path("t.csv").write_text("\n".join(lines))
    assert dre("fit", "t.csv", "-o", "m.safetensors", "--missing", "drop", "--labels", "kind", *SHORT) == 0
    told = capfd.readouterr().err
    assert told.count("2 features: size, weight") == told.count("1 of 80 rows lacks values") == told.count("not features") == 1
    for command in (
        ["transform", "m.safetensors", "t.csv", "-o", "y.csv", "--missing", "drop"],
        ["evaluate", "t.csv", "m.safetensors", "--labels", "kind"],
        ["plot", "m.safetensors", "t.csv"],
        ["explore", "m.safetensors", "t.csv"],
        ["plot", "y.csv", "t.csv", "-o", "y.png"],
    ):
        assert dre(*command) == 0
        printed = capfd.readouterr()
        assert "features" not in printed.err
        assert (printed.err + printed.out).count("lacks values") == 1
