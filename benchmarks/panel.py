"""Every data set of the panel by every method: quality of held-out rows, seconds, memory, and agreement between two seeds.

    python benchmarks/panel.py --data FOLDER                              # all, for hours; what was measured before is kept
    python benchmarks/panel.py --data FOLDER --only letter iris --methods dre umap --again
    python benchmarks/panel.py --data FOLDER --curve [--rows 100 300]     # seconds against rows, on 50 components of MNIST
    python benchmarks/panel.py --data FOLDER --busy                       # seconds beside two busy processes, and of two fits

FOLDER has mnist, fashion-mnist, imdb, scrna and tables. Each method has a process of its own (panel_fit.py) and the machine to
itself: three warm fits, on three splits or with three seeds on the official split, and one with another seed in a new process,
timed from its start. Held-out rows are scored. Tables are standardized. results/panel.json has the scores in "results", and the
other two in "curve" and "busy".
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from dre.metrics import centroid_correlation, evaluate, procrustes_distance
from panel_data import DATA, SCORED, SPLITS, Split, load
from panel_process import Array, FailedError, Process, Results, kind_of, write
from panel_speed import BUSY_DATA, BUSY_LOOPS, BUSY_METHODS, CURVE_ROWS, busy, curve, slowdown_ratio
from record import record, result_file

METHODS = ("dre", "dre-fast", "umap", "open-tsne", "pacmap")
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "continuity", "shepard_goodness")
UNSEEDED = ("umap", "pacmap")  # a seed would limit them to one thread


def score(name: str, split: Split, embedding: Array, embedded: Array) -> dict[str, float]:
    """Score the map of the held-out rows, or of a sample of them."""
    lost = int((~np.isfinite(embedded)).any(1).sum()) + int((~np.isfinite(embedding)).any(1).sum())
    if lost:
        raise FailedError(f"{lost} rows have no finite coordinates")
    count = min(len(embedded), SCORED.get(name, len(embedded)))
    rows, labels = split.test_rows, split.test_labels
    if count < len(labels):  # they may be sorted by label
        ids = np.random.default_rng(0).choice(len(labels), count, replace=False)
        rows, labels, embedded = rows[ids], labels[ids], embedded[ids]
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
        found, maps = process.fit(data, number, kind=kind_of(split.rows))
        runs.append({key: round(found[key], 3) for key in ("fit_seconds", "transform_seconds")})
        runs[-1] |= {"split": number, "seed": None if method in UNSEEDED else number}
        runs[-1] |= score(name, split, maps["rows"], maps["test_rows"])
        if number == 0:
            first = maps["rows"]
            with Process(method, given.device, warm=False) as alone:
                whole, maps = alone.fit(data, 1, embed=False)
            procrustes = procrustes_distance(first, maps["rows"])
    return {
        "rows": int(split.rows.shape[0]),
        "columns": int(np.prod(split.rows.shape[1:])),
        "runs": runs,
        "whole_seconds": round(whole["whole_seconds"], 2),
        "peak_mb": round(whole["peak_mb"]),
        "procrustes": round(float(procrustes), 4),
    }


def known(path: Path) -> dict[str, Results]:
    """Read what was measured before: scores, and the seconds of --curve and --busy."""
    content = json.loads(path.read_text()) if path.exists() else {}
    return {part: content.get(part, {}) for part in ("results", "curve", "busy")}


def keep(path: Path, part: str, name: str, key: str, found: Any) -> None:
    """Add one result to the file."""
    content = known(path)
    content[part].setdefault(name, {})[key] = found
    if part == "busy":
        content[part][name]["slowdown_ratio"] = slowdown_ratio(content[part][name])
    record(path, **{each: value for each, value in content.items() if value or each == "results"}, seed="0, 1, 2")


def show(name: str, method: str, found: Results) -> None:
    if "failed" in found:
        print(f"{name:20s} {method:10s} {found['failed']}", flush=True)
        return
    runs = found["runs"]
    scores = "  ".join(f"{mean(one[key] for one in runs):.3f}" for key in SCORES)
    seconds = f"{mean(one['fit_seconds'] for one in runs):7.2f} s warm {found['whole_seconds']:7.2f} s whole"
    print(f"{name:20s} {method:10s} {seconds}  {scores}  {found['procrustes']:.4f}  {found['peak_mb']} MB", flush=True)


def measure_cells(method: str, process: Process, given: argparse.Namespace, work: Path) -> None:
    for name in given.only or DATA:
        if method in known(given.out)["results"].get(name, {}) and not given.again:
            continue
        try:
            found = cell(name, method, process, given, work)
        except FailedError as problem:
            found = {"failed": str(problem)}
        show(name, method, found)
        keep(given.out, "results", name, method, found)


def measure_curve(method: str, process: Process, given: argparse.Namespace, work: Path) -> None:
    before = known(given.out)["curve"].get(method, {})
    rows = [count for count in given.rows if given.again or str(count) not in before]

    def keep_and_show(count: int, found: Any) -> None:
        print(f"{method:10s} {count:6d} rows  {found if isinstance(found, dict) else f'{found:8.2f} s'}", flush=True)
        keep(given.out, "curve", method, str(count), found)

    if rows:
        curve(process, given.data, work, rows, keep_and_show)


def measure_busy(method: str, process: Process, given: argparse.Namespace, work: Path) -> None:
    for name in given.only or BUSY_DATA:
        if method in known(given.out)["busy"].get(name, {}) and not given.again:
            continue
        try:
            with Process(method, given.device, warm=True) as twin:
                found = busy(name, process, given.data, work, twin=twin)
            text = f"{found['slowdown']:.2f} times as long beside {BUSY_LOOPS} processes"
            text += f", {found['twice_slowdown']:.2f} times beside the same fit"
        except FailedError as problem:
            found, text = {"failed": str(problem)}, str(problem)
        print(f"{name:20s} {method:10s} {text}", flush=True)
        keep(given.out, "busy", name, method, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=list(DATA), help="data sets")
    parser.add_argument("--methods", nargs="*", choices=METHODS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")
    parser.add_argument("--out", type=Path, help="write to this file; default: results/panel.json")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--curve", action="store_true", help="seconds against rows")
    kinds.add_argument("--busy", action="store_true", help="seconds beside two busy processes, and two fits at once")
    parser.add_argument("--rows", nargs="*", type=int, default=CURVE_ROWS, help="numbers of rows of --curve")
    given = parser.parse_args()
    given.out = given.out or result_file("panel" if given.device == "cpu" else "panel-gpu")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes are closed
    measure = measure_curve if given.curve else measure_busy if given.busy else measure_cells
    with tempfile.TemporaryDirectory() as folder:
        for method in given.methods or (BUSY_METHODS if given.busy else METHODS):
            with Process(method, given.device, warm=True) as process:
                measure(method, process, given, Path(folder))


if __name__ == "__main__":
    main()
