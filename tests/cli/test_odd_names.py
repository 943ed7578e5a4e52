"""Names in files may hold control sequences: commands print them escaped, and a terminal never obeys them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dre import DRE
from dre.progress.printable import printable

HOSTILE = "size\x1b]0;owned\x07\x1b[2J\u202e"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "hostile.safetensors"
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=[HOSTILE, "b", "c"])
    fitted = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(4, depth=1)", random_state=0, device="cpu").fit(X)
    fitted.fill_values_ = {HOSTILE: 0.5}
    fitted.save(path)
    return path


def run(*words: str | Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "dre", *map(str, words)]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "DRE_DEBUG": ""})
    return done.returncode, (done.stdout + done.stderr).decode()


def is_safe(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text)


def test_info_escapes_the_names_of_columns(model):
    code, text = run("info", model)
    assert code == 0
    assert is_safe(text)
    assert r"size\x1b]0;owned\x07\x1b[2J\u202e" in text


@pytest.mark.slow
def test_errors_and_messages_escape_the_names_of_columns(model, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text("b,c\n1,2\n3,4\n")
    code, text = run("transform", model, table, "-o", tmp_path / "map.csv")
    assert code != 0
    assert is_safe(text)
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=[HOSTILE, "b", "c"]).to_csv(table, index=False)
    code, text = run("fit", table, "-o", tmp_path / "model.safetensors", "--recipe", "fast")
    assert code == 0, text
    assert is_safe(text)


@pytest.mark.parametrize("text", ["plain", "Größe µm — 大小", "a\nb\tc", ""])
def test_what_is_printable_stays(text):
    assert printable(text) == text


def test_rows_that_float32_cannot_hold_end_the_command_with_their_number(model, tmp_path):
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    X[17_000, 1] = 1e21
    pd.DataFrame(X, columns=[HOSTILE, "b", "c"]).to_csv(tmp_path / "far.csv", index=False)
    code, text = run("transform", model, tmp_path / "far.csv", "-o", tmp_path / "map.csv")
    assert code == 1
    assert "1e+21 in row 17000 in column 'b'" in text
    assert "Check the units" in text
    assert not (tmp_path / "map.csv").exists()
