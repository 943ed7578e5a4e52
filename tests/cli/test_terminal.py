"""Output of a fit: a progress bar in a terminal, plain lines in a log."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'dre'; from dre.cli import main; main()"]
FIT = ["fit", "x.npy", "-o", "m.safetensors", "--device", "cpu", "--schedule"]
LONG = "x: gaussian(5) -> kl * 400; h1: gaussian(5) -> kl * 400"  # some seconds each, so that there is a bar
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}  # on a busy machine several would wait for each other


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", load_digits().data[:500].astype(np.float32))
    return tmp_path


def in_a_terminal(folder: Path, columns: int, arguments: list[str]) -> str:
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    streams = {"stdin": program, "stdout": program, "stderr": program}
    process = subprocess.Popen([*PROGRAM, *arguments], cwd=folder, env=ONE_THREAD, **streams)
    os.close(program)
    shown = b""
    try:
        while some := os.read(terminal, 2**16):
            shown += some
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(terminal)
    assert process.wait(timeout=60) == 0
    return shown.decode()


@pytest.mark.slow
def test_a_terminal_of_80_columns_shows_stage_loss_speed_and_time_left_in_a_line(folder: Path) -> None:
    shown = in_a_terminal(folder, 80, [*FIT, LONG])
    before, _, summary = shown.partition("500 × 64 values")
    bars = [line for line in re.split(r"[\r\n]+", before) if "loss" in line]
    assert bars
    bar = r"stage [01] \((x|h1)\) \|.+\| \d\d:\d\d<\d\d:\d\d, epoch \d+ of 400, loss [\d.]+, [\d,]+ rows/s *"
    for line in bars:
        assert re.fullmatch(bar, line), line
        assert len(line) <= 80
    assert {line[:7] for line in bars} == {"stage 0", "stage 1"}
    assert "\n" not in before.strip("\r\n")  # it is drawn in place, and gone when the summary comes
    assert "Saved the model to m.safetensors." in summary


@pytest.mark.slow
def test_a_log_has_plain_lines_alone(folder: Path) -> None:
    done = subprocess.run([*PROGRAM, *FIT, LONG], cwd=folder, env=ONE_THREAD, capture_output=True, check=True)
    assert not set(done.stderr + done.stdout) & set(b"\r\x1b\x08")
    assert all(line.startswith("dre: stage ") for line in done.stderr.decode().splitlines())  # after half a minute
    assert done.stdout.decode().splitlines()[0] == "500 × 64 values embedded in 2 dimensions by mlp(256)"
