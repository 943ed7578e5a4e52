"""Build the package, install the wheel alone and use it there: ``make test-wheel``.

python release/check_wheel.py             create .venv-wheel with the wheel and its core dependencies, and run smoke.py there
python release/check_wheel.py --record    also write benchmarks/results/reliability-wheel.json

The wheel is built from the source archive, as by a user who installs that. Both stay in dist/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import WHEELS, new_environment, pip, run_in, why_no_index
from pins import ROOT

FOLDER = ".venv-wheel"
DIST = ROOT / "dist"


def build() -> tuple[Path, Path]:
    """Build the source archive, and the wheel from it, with the hatchling of this environment."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--target", "sdist"], cwd=ROOT, check=True)
    (archive,) = DIST.glob("*.tar.gz")
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    pip(Path(sys.executable), "wheel", *offline, "--wheel-dir", DIST, archive)
    (wheel,) = DIST.glob("*.whl")
    return archive, wheel


def main() -> int:
    """Build, install and use the package."""
    if reason := why_no_index():
        print(f"skipped: the index of pip can't be reached: {reason}")
        return 0
    archive, wheel = build()
    python = new_environment(FOLDER)
    pip(python, "install", *WHEELS, "--constraint", ROOT / "constraints.txt", wheel)
    pip(python, "check")
    with tempfile.TemporaryDirectory() as empty:  # so that only the installed package can be imported
        return run_in(python, ROOT / "release" / "smoke.py", archive, wheel, *sys.argv[1:], folder=Path(empty))


if __name__ == "__main__":
    sys.exit(main())
