"""Runs the tests that need a GPU, and records which kernels they were run on: ``make test-gpu``.

``tests/test_gpu_record.py`` compares the record with the tree, and fails if a kernel changed since. An argument selects tests,
as pytest's ``-k`` does; the record then says which, and that the others are still to be run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "gpu-record.json"
PATTERNS = (
    "src/dre/*/triton/*.py",
    "src/dre/training/cuda_graphs.py",
    "src/dre/training/stepper.py",
    "src/dre/encoder/flat_weights.py",
    "src/dre/encoder/dense_pass.py",
    "src/dre/coordinates/free.py",
    "src/dre/loss/grid_sums.py",
)


def kernels_digest() -> str:
    """Digest of all files that only run on a GPU, or otherwise there than on a CPU."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern)):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


class Counts:
    """Counts outcomes as pytest reports them, and names the tests that failed."""

    def __init__(self) -> None:
        self.outcomes = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
        if report.outcome == "failed":
            self.failures.append(report.nodeid.rpartition("::")[2])


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return os.environ.get("GIT_COMMIT") or done.stdout.strip() or "unknown"


def main() -> int:
    import torch

    if not torch.cuda.is_available():
        print("make test-gpu needs a CUDA device, and torch finds none")
        return 2
    counts, selection = Counts(), " ".join(sys.argv[1:]) or None
    words = ["-q", "-p", "no:cacheprovider", str(ROOT / "tests" / "test_gpu.py"), *(["-k", selection] if selection else [])]
    code = pytest.main(words, plugins=[counts])
    card = torch.cuda.get_device_name()
    about = {"commit": commit(), "card": card, "torch": torch.__version__, "selection": selection}
    record = {**about, **counts.outcomes, "failures": counts.failures, "kernels": kernels_digest()}
    target = Path(os.environ.get("GPU_RECORD", RECORD))
    target.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
