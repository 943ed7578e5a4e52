"""Every data set of the panel by every method: quality of held-out rows, seconds, memory, and agreement between two seeds.

    python benchmarks/panel.py --data FOLDER                              # all, for hours; what was measured before is kept
    python benchmarks/panel.py --data FOLDER --only letter iris --methods dre umap --again
    python benchmarks/panel.py --data FOLDER --curve                      # seconds against rows, on 50 components of MNIST

FOLDER has mnist, fashion-mnist, imdb, scrna and tables. Each method has a process of its own (panel_fit.py) and the machine to
itself: three warm fits, on three splits or with three seeds on the official split, and one with another seed in a new process,
timed from its start. Held-out rows are scored. Tables are standardized.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from dre.metrics import centroid_correlation, evaluate, procrustes_distance
from panel_data import DATA, SCORED, SPLITS, Split, load
from record import RESULTS, record

METHODS = ("dre", "dre-fast", "umap", "open-tsne", "pacmap")
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "continuity", "shepard_goodness")
CURVE_ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 60_000)
CURVE_DATA = "mnist-pca50"
Array = np.ndarray[Any, Any]
Results = dict[str, Any]


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


class Process:
    """A process that fits with one method."""

    def __init__(self, method: str, device: str, *, warm: bool) -> None:
        words = [sys.executable, str(Path(__file__).with_name("panel_fit.py")), method, device, *(["--warm"] if warm else [])]
        self._began = time.time()
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=quiet, text=True)

    def fit(self, data: Path, seed: int, *, kind: str = "", embed: bool = True) -> tuple[Results, dict[str, Array]]:
        """Fit in that process; return its times, and the maps of the rows and of the held-out ones."""
        out = data.with_name("out.npz")
        job = {"data": str(data), "out": str(out), "seed": seed, "kind": kind, "embed": embed}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise FailedError("the process died")
            if line.startswith("{"):  # libraries print, too
                break
        found = json.loads(line)
        if "failed" in found:
            raise FailedError(found["failed"])
        found["whole_seconds"] = found.pop("fitted_at") - self._began
        with np.load(out) as maps:
            return found, dict(maps)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def score(name: str, split: Split, embedding: Array, embedded: Array) -> dict[str, float]:
    """Score the map of the held-out rows."""
    count = min(len(embedded), SCORED.get(name, len(embedded)))
    rows, labels, embedded = split.test_rows[:count], split.test_labels[:count], embedded[:count]
    if count < len(split.test_labels):  # they may be sorted by label
        ids = np.random.default_rng(0).choice(len(split.test_labels), count, replace=False)
        rows, labels, embedded = split.test_rows[ids], split.test_labels[ids], embedded[ids]
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows).reshape(count, -1)
    result = evaluate(rows, embedded, labels, reference=(embedding, split.labels))
    scores = {each: round(float(result[each]), 4) for each in SCORES}
    if len(np.unique(labels)) > 2:
        scores["centroid_correlation"] = round(float(centroid_correlation(rows, embedded, labels)), 4)
    return scores


def cell(name: str, method: str, process: Process, given: argparse.Namespace, work: Path) -> Results:
    """Measure one method on one data set."""
    runs = []
    for number in range(given.splits):
        split = load(name, number, given.data)
        data = work / "data.npz"
        write(data, split.rows, split.test_rows)
        found, maps = process.fit(data, number, kind="dense" if isinstance(split.rows, np.ndarray) else "sparse")
        runs.append({key: round(found[key], 3) for key in ("fit_seconds", "transform_seconds")})
        runs[-1] |= {"split": number, "seed": number, **score(name, split, maps["rows"], maps["test_rows"])}
        if number == 0:
            first = maps["rows"]
            alone = Process(method, given.device, warm=False)
            whole, maps = alone.fit(data, 1, embed=False)
            alone.close()
            procrustes = procrustes_distance(first, maps["rows"])
    return {
        "rows": int(split.rows.shape[0]),
        "columns": int(np.prod(split.rows.shape[1:])),
        "runs": runs,
        "whole_seconds": round(whole["whole_seconds"], 2),
        "peak_mb": round(whole["peak_mb"]),
        "procrustes": round(float(procrustes), 4),
    }


def curve(method: str, process: Process, given: argparse.Namespace, work: Path) -> Results:
    """Seconds of warm fits of more and more rows."""
    split, data = load(CURVE_DATA, 0, given.data), work / "data.npz"
    ids = np.random.default_rng(0).permutation(len(split.labels))
    seconds = {}
    for count in CURVE_ROWS:
        write(data, split.rows[ids[:count]], split.test_rows[:100])
        seconds[str(count)] = round(process.fit(data, 0, embed=False)[0]["fit_seconds"], 3)
        print(f"{method:10s} {count:6d} rows {seconds[str(count)]:8.2f} s", flush=True)
    return seconds


def known(file: str) -> Results:
    path = RESULTS / f"{file}.json"
    return dict(json.loads(path.read_text())["results"]) if path.exists() else {}


def show(name: str, method: str, found: Results) -> None:
    if "failed" in found:
        print(f"{name:20s} {method:10s} {found['failed']}", flush=True)
        return
    runs = found["runs"]
    scores = "  ".join(f"{mean(one[key] for one in runs):.3f}" for key in SCORES)
    seconds = f"{mean(one['fit_seconds'] for one in runs):7.2f} s warm {found['whole_seconds']:7.2f} s whole"
    print(f"{name:20s} {method:10s} {seconds}  {scores}  {found['procrustes']:.4f}  {found['peak_mb']} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")
    parser.add_argument("--curve", action="store_true")
    given = parser.parse_args()
    file = "panel" if given.device == "cpu" else "panel-gpu"
    file += "-curve" if given.curve else ""
    with tempfile.TemporaryDirectory() as folder:
        for method in given.methods:
            process = Process(method, given.device, warm=True)
            for name in [CURVE_DATA] if given.curve else given.only:
                results = known(file)
                if method in results.setdefault(name, {}) and not given.again:
                    continue
                try:
                    found = (curve if given.curve else partial(cell, name))(method, process, given, Path(folder))
                except FailedError as problem:
                    found = {"failed": str(problem)}
                results[name][method] = found
                if not given.curve:
                    show(name, method, found)
                record(file, results, seed="0, 1, 2")
            process.close()


if __name__ == "__main__":
    main()
