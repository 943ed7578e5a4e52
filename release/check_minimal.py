"""Run the tests with the lowest versions that pyproject.toml admits: ``make test-minimal``.

python release/check_minimal.py             create .venv-minimal from minimal.txt and run the tests there
python release/check_minimal.py --record    also write benchmarks/results/reliability-minimal-versions.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ".venv-minimal"
# What calls other libraries: files, tables, figures, estimators, models, commands. Sums in torch, browsers and signals do not.
TESTS = (
    "baselines/test_tsne.py",
    "baselines/test_umap.py",
    "cli",
    "data",
    "datasets",
    "encoder",
    "io",
    "metrics/test_peers.py",
    "model",
    "neighbors/test_search.py",
    "plot",
)
LEFT_OUT = (
    "cli/test_ctrl_c.py",
    "cli/test_fit_checkpoints.py",
    "cli/test_long_work.py",
    "cli/test_terminal.py",
    "io/readers/test_attack.py",  # what a hostile file may cost is promised for the versions in constraints.txt
    "io/writers/test_full_disk.py",
    "model/test_checkpoint.py",
    "model/test_forks.py",
    "model/test_threads_at_once.py",
    "plot/test_labels.py",
)


class Counts:
    """Counts the outcomes that pytest reports."""

    def __init__(self) -> None:
        self.outcomes = {"passed": 0, "failed": 0, "skipped": 0}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1


def install() -> Path | None:
    """Create the environment and return its interpreter, or None without an index."""
    from environment import install_pins, new_environment, pip, why_no_index

    if reason := why_no_index():
        print(f"skipped: the index of pip can't be reached: {reason}")
        return None
    python = new_environment(FOLDER)
    install_pins(python, ROOT / "release" / "minimal.txt")
    pip(python, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    pip(python, "check")
    return python


def run_tests() -> int:
    """Run the tests in this environment, and record their outcomes if asked to."""
    began, counts = time.perf_counter(), Counts()
    tests = [str(ROOT / "tests" / name) for name in TESTS]
    tests += [f"--ignore={ROOT / 'tests' / name}" for name in LEFT_OUT]
    code = pytest.main(["-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *tests], plugins=[counts])
    if "--record" in sys.argv[1:]:
        from record import record

        about = "tests with the lowest versions of the packages that pyproject.toml admits, on one version of Python"
        results = {"about": about, "cases": sum(counts.outcomes.values()), "outcomes": counts.outcomes}
        record("reliability-minimal-versions", results, seed=0, seconds=round(time.perf_counter() - began))
    return int(code)


def main() -> int:
    """Create the environment and start this file there; in it, run the tests."""
    if Path(sys.prefix) == ROOT / FOLDER:
        return run_tests()
    from environment import run_in

    python = install()
    return run_in(python, "release/check_minimal.py", *sys.argv[1:]) if python else 0


if __name__ == "__main__":
    sys.exit(main())
