"""The README says what is true: its figures are those of the result files, and its programs run."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from sklearn.datasets import load_digits

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_every_table_is_read_from_the_result_files():
    done = subprocess.run(
        [sys.executable, "benchmarks/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", BLOCKS, ids=[block.strip().splitlines()[-1][:40] for block in BLOCKS])
def test_every_program_runs(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    digits = load_digits()
    X = digits.data[:200]
    namespace = {"X": X, "X_new": X[:5], "labels": digits.target[:200]}
    exec("from dre import DRE", namespace)
    exec(program, namespace)
