"""Virtual environments of the checks in this folder, beside .venv in the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError

from lock import configured_index, index_page
from pins import ROOT, lock_of

WHEELS = ("--quiet", "--no-compile", "--only-binary", ":all:")  # nothing is built; only modules that are used are compiled


def why_no_index() -> str:
    """Return why the index of pip can't be reached, or an empty text if it can."""
    try:
        index_page(*configured_index(), "torch")
    except HTTPError as error:  # it answered
        return "" if error.code == 404 else str(error)
    except (URLError, TimeoutError) as error:
        return str(error)
    return ""


def new_environment(name: str) -> Path:
    """Create an empty environment, in place of an older one, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ROOT / name)], check=True)
    return ROOT / name / "bin" / "python"


def pip(python: Path, *words: str | Path) -> None:
    """Run pip in an environment; an error ends the check with pip's own message."""
    done = subprocess.run([str(python), "-m", "pip", *map(str, words)], check=False)
    if done.returncode:
        raise SystemExit(f"error: pip {words[0]} failed in {python.parents[1].name}")


def install_pins(python: Path, pins: Path) -> None:
    """Install a list of pins: with their hashes, then those that have none."""
    pip(python, "install", *WHEELS, "--require-hashes", "--no-deps", "--requirement", lock_of(pins))
    pip(python, "install", *WHEELS, "--constraint", pins, "torch")


def run_in(python: Path, *words: str | Path, folder: Path = ROOT) -> int:
    """Run a script of this folder in an environment, with benchmarks/ to record its outcomes, and return its exit code."""
    cache = python.parents[1] / "numba"  # kernels compiled by another numba than that of .venv
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks"), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([str(python), *map(str, words)], cwd=folder, env=variables, check=False).returncode
