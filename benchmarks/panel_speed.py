"""Seconds of the panel's methods: against the number of rows, beside other processes, and beside themselves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from panel_data import load
from panel_process import FailedError, Process, Results, busy_processes, kind_of, write

CURVE_ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 60_000)
CURVE_DATA = "mnist-pca50"
BUSY_DATA = ("digits", "pendigits", "mnist")
BUSY_FITTED = {"mnist": 10_000}  # rows, where all would take too long
BUSY_METHODS = ("dre", "umap")
BUSY_LOOPS = 2
BUSY_REPEATS = 3  # fits alone and beside the loops, in turn


def curve(process: Process, folder: Path, work: Path, rows: list[int], keep: Callable[[int, Any], None]) -> None:
    """Time warm fits of so many rows each; ``keep`` gets each result, seconds or a failure, as soon as it is known."""
    split, data = load(CURVE_DATA, 0, folder), work / "data.npz"
    ids = np.random.default_rng(0).permutation(len(split.labels))
    for count in rows:
        write(data, split.rows[ids[:count]], split.test_rows[:100])
        try:
            keep(count, round(process.fit(data, 0, kind="table", embed=False)[0]["fit_seconds"], 3))
        except FailedError as problem:
            keep(count, {"failed": str(problem)})


def busy(
    name: str, process: Process, folder: Path, work: Path, *, repeats: int = BUSY_REPEATS, twin: Process | None = None
) -> Results:
    """Time warm fits with the machine to themselves, beside loops that keep the cores busy, and beside the same fit."""
    split, data = load(name, 0, folder), work / "data.npz"
    rows = split.rows[: BUSY_FITTED.get(name)]
    copy = work / "twin" / data.name  # each process writes its map beside its data
    copy.parent.mkdir(exist_ok=True)
    for path in (data, copy):
        write(path, rows, split.test_rows[:100])

    def seconds(seed: int, by: Process = process, path: Path = data) -> float:
        return float(round(by.fit(path, seed, kind=kind_of(rows), embed=False)[0]["fit_seconds"], 3))

    seconds(0)  # warms the process up
    quiet, beside, twice = [], [], []
    if twin is not None:
        seconds(0, twin, copy)
    for seed in range(repeats):
        quiet.append(seconds(seed))
        with busy_processes(BUSY_LOOPS):
            beside.append(seconds(seed))
        if twin is not None:
            with ThreadPoolExecutor(1) as other:
                theirs = other.submit(seconds, seed, twin, copy)
                twice.append(max(seconds(seed), theirs.result()))
    slowdown = round(median(beside) / median(quiet), 3)
    found = {"rows": int(rows.shape[0]), "quiet_seconds": quiet, "busy_seconds": beside, "slowdown": slowdown}
    if twice:
        found |= {"twice_seconds": twice, "twice_slowdown": round(median(twice) / median(quiet), 3)}
    return found


def slowdown_ratio(cells: dict[str, Results]) -> float | None:
    """How much more the first method is slowed down than the second; None if either is missing."""
    first, second = (cells.get(method, {}).get("slowdown") for method in BUSY_METHODS)
    return None if first is None or second is None else round(first / second, 3)
