"""Ctrl-C in a real process: training keeps what it has or nothing, and no file is left incomplete."""

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

X = load_digits().data.astype(np.float32)
LONG = ["--schedule", "x: gaussian(5) -> kl * 100000", "--seed", "0", "--device", "cpu"]

# A process started in the background may ignore SIGINT, and so would its children.
HEARS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
# Prints when training is under way, so that the test knows when to interrupt.
IN_FIT = """
from dre.training.events import StepEnded
def tell(event, seen=[]):
    seen.append(isinstance(event, StepEnded))
    if sum(seen) == 30 and seen[-1]:
        print("now", flush=True)
import dre.model.estimator
observers = dre.model.estimator.DRE._default_observers
dre.model.estimator.DRE._default_observers = lambda self, shape: [*observers(self, shape), tell]
"""
IN_A_LONG_STEP = IN_FIT.replace("flush=True)", "flush=True); time.sleep(60)")
BEFORE_THE_FIRST_STEP = """
import time
import dre.data.scaling
def fit(X, device, **options):
    print("now", flush=True)
    time.sleep(60)
dre.data.scaling.Scaling.fit = fit
"""
# A library that is being loaded and catches everything, as some do to see whether another one is there.
IN_AN_IMPORT = """
import builtins, time
load = builtins.__import__
def slowly(name, *others, seen=[]):
    if name == "torch" and not seen:
        seen.append(1)
        print("now", flush=True)
        try:
            time.sleep(20)
        except BaseException:
            pass
    return load(name, *others)
builtins.__import__ = slowly
"""
IN_SCORES = """
import time
import dre.metrics.evaluation
def score(*arguments, **options):
    print("now", flush=True)
    time.sleep(60)
dre.metrics.evaluation.quick_scores = score
"""
IN_TRANSFORM = """
import dre.cli.transform, dre.model.estimator, time
sys.modules["dre.cli.transform"].CHUNK = 100
transform = dre.model.estimator.DRE.transform
def slowly(self, X, stage=None, seen=[]):
    seen.append(1)
    if len(seen) == 5:
        print("now", flush=True)
    if len(seen) >= 5:
        time.sleep(60)
    return transform(self, X, stage=stage)
dre.model.estimator.DRE.transform = slowly
"""
IN_SAVE = """
import time, dre.model.archive
save = dre.model.archive.save_file
def half(tensors, path, header):
    save(tensors, path, header)
    print("now", flush=True)
    time.sleep(60)
dre.model.archive.save_file = half
"""


def pressed(folder: Path, patch: str, *arguments: str, times: int = 1) -> subprocess.CompletedProcess[str]:
    """Run the command and press Ctrl-C once it has printed "now"."""
    program = f"{HEARS}import sys, time\n{patch}\nsys.argv[0] = 'dre'\nfrom dre.cli import main\nmain()"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("DRE_DEBUG", None)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n", process.communicate()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5 if times > 1 else 0)  # two at once would be one
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "Traceback" not in err
    return subprocess.CompletedProcess([], process.returncode, out, err)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_a_fit_ends_early_and_keeps_what_was_learned(folder: Path) -> None:
    done = pressed(folder, IN_FIT, "fit", "x.npy", "-o", "m.safetensors", "--embedding", "y.npy", *LONG)
    assert done.returncode == 0
    assert "dre: fit was interrupted in stage 0 (x), epoch " in done.stderr
    assert "Saved the model to m.safetensors" in done.stdout
    assert files(folder) == ["m.safetensors", "x.npy", "y.npy"]
    again = DRE.load(folder / "m.safetensors").transform(X)
    coordinates = np.load(folder / "y.npy")
    assert np.allclose(again, coordinates, atol=1e-4 * np.ptp(coordinates))


@pytest.mark.parametrize("before", [pytest.param(None, marks=pytest.mark.slow), b"as it was"])
@pytest.mark.parametrize(("patch", "times"), [(BEFORE_THE_FIRST_STEP, 1), (IN_A_LONG_STEP, 2)], ids=["too early", "twice"])
def test_a_fit_that_keeps_nothing_leaves_nothing(folder: Path, patch: str, times: int, before: bytes | None) -> None:
    if before is not None:
        (folder / "m.safetensors").write_bytes(before)
    there = files(folder)
    done = pressed(folder, patch, "fit", "x.npy", "-o", "m.safetensors", "--force", *LONG, times=times)
    assert done.returncode == 130
    assert "interrupted by Ctrl-C" in done.stderr
    assert files(folder) == there
    if before is not None:
        assert (folder / "m.safetensors").read_bytes() == before


def test_libraries_that_are_being_loaded_do_not_swallow_it(folder: Path) -> None:
    began = time.monotonic()
    done = pressed(folder, IN_AN_IMPORT, "fit", "x.npy", "-o", "m.safetensors", *LONG)
    assert done.returncode == 130
    assert "interrupted by Ctrl-C" in done.stderr
    assert time.monotonic() - began < 15
    assert files(folder) == ["x.npy"]


def test_a_model_that_is_saved_is_not_reported_as_lost(folder: Path) -> None:
    short = ["--schedule", "x: gaussian(5) -> kl * 1", "--device", "cpu"]
    done = pressed(folder, IN_SCORES, "fit", "x.npy", "-o", "m.safetensors", *short)
    assert done.returncode == 130
    assert "the model is saved in m.safetensors; Ctrl-C ended the computation of its scores" in done.stderr
    assert files(folder) == ["m.safetensors", "x.npy"]


@pytest.mark.slow
def test_a_model_is_saved_whole_or_not_at_all(folder: Path) -> None:
    short = ["--schedule", "x: gaussian(5) -> kl * 1", "--device", "cpu"]
    done = pressed(folder, IN_SAVE, "fit", "x.npy", "-o", "m.safetensors", *short)
    assert done.returncode == 130
    assert files(folder) == ["x.npy"]


@pytest.mark.parametrize(
    "out",
    [
        pytest.param("y.npy", marks=pytest.mark.slow),
        "y.csv",
        pytest.param("y.tsv.gz", marks=pytest.mark.slow),
        pytest.param("y.parquet", marks=pytest.mark.slow),
    ],
)
def test_coordinates_are_written_whole_or_not_at_all(folder: Path, out: str) -> None:
    DRE(schedule="x: gaussian(5) -> kl * 1", random_state=0, device="cpu").fit(X).save(folder / "m.safetensors")
    done = pressed(folder, IN_TRANSFORM, "transform", "m.safetensors", "x.npy", "-o", out)
    assert done.returncode == 130
    assert "interrupted by Ctrl-C" in done.stderr
    assert files(folder) == ["m.safetensors", "x.npy"]
