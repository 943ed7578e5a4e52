"""`dre fit --checkpoint`: a process that a signal has ended goes on where it was, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE

X = load_digits().data[:300].astype(np.float32)
OPTIONS = ["--schedule", "x: gaussian(5) -> kl * 60; h1: gaussian(5) -> kl * 20", "--encoder", "mlp(16)", "--batch-size", "50"]
OPTIONS += ["--seed", "0", "--device", "cpu"]
FIT = ["fit", "x.npy", "-o", "m.safetensors", *OPTIONS, "--checkpoint", "run"]
# Prints after some steps, and then waits for the signal: it arrives in the middle of an epoch.
WAITS = """
import sys, time
import dre.model.estimator
from dre.training.events import StepEnded
def wait(event, seen=[]):
    seen.append(isinstance(event, StepEnded))
    if sum(seen) == 100 and seen[-1]:
        print("now", flush=True)
        time.sleep(2)
observers = dre.model.estimator.DRE._default_observers
dre.model.estimator.DRE._default_observers = lambda self, shape: [*observers(self, shape), wait]
sys.argv[0] = "dre"
from dre.cli import main
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def dre(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dre", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def stopped(folder: Path, number: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Begin a fit, and send a signal after a hundred steps."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *FIT, *more], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n", process.communicate()
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, err)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_a_fit_that_was_stopped_goes_on_with_the_same_bits(number: signal.Signals, folder: Path) -> None:
    done = stopped(folder, number, "--checkpoint-minutes", "0.01")
    assert files(folder) == ["run", "x.npy"]
    assert all(name.startswith("checkpoint-") for name in os.listdir(folder / "run"))
    if number == signal.SIGKILL:
        assert done.returncode == -number
    else:
        assert done.returncode == 128 + number
        assert f"stopped by {number.name} after a checkpoint was written; --resume goes on there" in done.stderr
        assert "Traceback" not in done.stderr
    again = dre(folder, *FIT, "--resume")
    assert again.returncode == 0, again.stderr
    assert "dre: resuming the fit in run in stage 0, epoch" in again.stderr
    assert files(folder) == ["m.safetensors", "x.npy"]  # a model that is saved needs no checkpoint
    wanted = DRE(schedule=OPTIONS[1], encoder="mlp(16)", batch_size=50, random_state=0, device="cpu").fit(X)
    np.testing.assert_array_equal(DRE.load(folder / "m.safetensors").transform(X), wanted.transform(X))


@pytest.mark.slow
def test_ctrl_c_saves_the_model_and_says_how_to_go_on(folder: Path) -> None:
    done = stopped(folder, signal.SIGINT)
    assert done.returncode == 0
    assert "run has a checkpoint: the same command with --resume --force goes on" in done.stderr
    assert files(folder) == ["m.safetensors", "run", "x.npy"]
    again = dre(folder, *FIT, "--resume", "--force")
    assert again.returncode == 0, again.stderr
    assert files(folder) == ["m.safetensors", "x.npy"]


@pytest.mark.slow
def test_checkpoints_of_an_earlier_fit_are_kept_without_force(folder: Path) -> None:
    stopped(folder, signal.SIGTERM)
    before = sorted(os.listdir(folder / "run"))
    refused = dre(folder, *FIT)
    assert refused.returncode == 2
    assert "run has checkpoints of an earlier fit: pass --resume to continue it, or choose another folder" in refused.stderr
    other = dre(folder, *[{"0": "1"}.get(word, word) for word in FIT], "--resume")
    assert other.returncode == 2
    assert "seed: the checkpoint has 0; this fit has 1" in other.stderr
    assert sorted(os.listdir(folder / "run")) == before
    assert dre(folder, *FIT, "--force").returncode == 0
    assert files(folder) == ["m.safetensors", "x.npy"]


@pytest.mark.slow
def test_force_gives_up_checkpoints_only_when_the_fit_can_begin(folder: Path) -> None:
    stopped(folder, signal.SIGTERM)
    before = sorted(os.listdir(folder / "run"))
    assert dre(folder, *[{"x.npy": "no.npy"}.get(word, word) for word in FIT], "--force").returncode == 2
    assert dre(folder, *FIT, "--force", "--perplexity", "nan").returncode == 2
    assert sorted(os.listdir(folder / "run")) == before


@pytest.mark.slow
def test_resume_without_a_checkpoint_begins_and_says_so(folder: Path) -> None:
    done = dre(folder, *FIT, "--resume")
    assert done.returncode == 0, done.stderr
    assert "run has no checkpoint yet: the fit begins at its start" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resume"], "--resume needs the folder of the checkpoints"),
        (["--checkpoint-minutes", "3"], "--checkpoint-minutes needs the folder of the checkpoints"),
        (["--checkpoint", "x.npy"], "x.npy can't hold checkpoints"),
    ],
)
def test_wrong_options_are_usage_errors(options: list[str], message: str, folder: Path) -> None:
    began = time.monotonic()
    done = dre(folder, "fit", "x.npy", "-o", "m.safetensors", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert time.monotonic() - began < 30
    assert files(folder) == ["x.npy"]
