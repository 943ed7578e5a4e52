"""Processes of the panel: those that fit with one method, and those that keep the cores busy beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Results = dict[str, Any]
# Ends with its parent, even where that is killed.
BUSY_LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))"


class FailedError(Exception):
    """A method that cannot fit or embed these rows."""


def write(path: Path, rows: Any, test_rows: Any) -> None:
    """Write what panel_fit.py reads; a sparse matrix as its three arrays."""
    arrays: dict[str, Any] = {}
    for part, values in (("rows", rows), ("test_rows", test_rows)):
        if isinstance(values, np.ndarray):
            arrays[part] = values
        else:
            arrays |= {f"{part}_{name}": getattr(values, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(path, **arrays)


def kind_of(rows: Any) -> str:
    """Kind of the rows; a method may have compiled code for each."""
    if not isinstance(rows, np.ndarray):
        return "sparse"
    return "table" if rows.ndim == 2 else "images"


class Process:
    """A process that fits with one method. If a fit kills it, the next one has a new process."""

    def __init__(self, method: str, device: str, *, warm: bool) -> None:
        self._words = [sys.executable, str(Path(__file__).with_name("panel_fit.py")), method, device]
        self._words += ["--warm"] if warm else []
        self._start()

    def _start(self) -> None:
        self._began = time.time()
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(self._words, stdin=pipe, stdout=pipe, stderr=quiet, text=True)

    def fit(self, data: Path, seed: int, *, kind: str = "", embed: bool = True) -> tuple[Results, dict[str, Array]]:
        """Fit in that process; return its times, and the maps of the rows and of the held-out ones."""
        if self._process.poll() is not None:
            self.close()
            self._start()
        out = data.with_name("out.npz")
        found = self._answer({"data": str(data), "out": str(out), "seed": seed, "kind": kind, "embed": embed})
        if "failed" in found:
            raise FailedError(found["failed"])
        found["whole_seconds"] = found.pop("fitted_at") - self._began
        with np.load(out) as maps:
            return found, dict(maps)

    def _answer(self, job: Results) -> Results:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has died, so there is no line to read
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):  # libraries print, too
                found: Results = json.loads(line)
                return found
        raise FailedError(f"the process ended with code {self._process.wait()}")

    def close(self) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):  # it died with a job unread
            self._process.communicate()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def busy_processes(count: int) -> Iterator[list[int]]:
    """Keep ``count`` cores busy with loops in Python; yield the ids of their processes."""
    loops: list[subprocess.Popen[bytes]] = []
    try:
        loops.extend(subprocess.Popen([sys.executable, "-c", BUSY_LOOP, str(os.getpid())]) for _ in range(count))
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
