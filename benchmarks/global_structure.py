"""What the distances to landmarks give: scores of held-out rows by their weight beside the loss of free coordinates.

    python benchmarks/global_structure.py --data FOLDER [--processes 8]

Two splits of the panel's data with 500 to 20,000 rows, one seed each. Fits that run beside each other tell no seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE, Schedule, Shepard
from dre.metrics import centroid_correlation, evaluate
from panel_data import DATA, load
from record import record, result_file

WEIGHTS = (0.0, 0.3, 1.0)
SPLITS = 2
FEWEST, MOST = 500, 20_000  # rows whose coordinates are free, with a sum over all pairs
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "shepard_goodness")
Job = tuple[str, int, float, Path]


def measure(job: Job) -> dict[str, Any] | None:
    """Fit one split with this weight in all stages; None if it has too few or too many rows."""
    name, number, weight, folder = job
    split = load(name, number, folder)
    if not FEWEST <= len(split.rows) < MOST:
        return None
    beside = weight * Shepard() if weight else None
    stages = [replace(stage, free_with=beside) for stage in DRE(device="cpu").plan(split.rows.shape).schedule]
    model = DRE(schedule=Schedule(*stages), device="cpu", random_state=number, verbose=False).fit(split.rows)
    rows, embedding = np.asarray(split.test_rows).reshape(len(split.test_rows), -1), model.transform(split.test_rows)
    found = evaluate(rows, embedding, split.test_labels, reference=(model.embedding_, split.labels))
    scores = {score: round(float(found[score]), 4) for score in SCORES}
    if len(np.unique(split.test_labels)) > 2:
        scores["centroid_correlation"] = round(float(centroid_correlation(rows, embedding, split.test_labels)), 4)
    about = {"data": name, "rows": len(split.rows), "split": number, "weight": weight}
    return {**about, "stages": len(model.stages_), **scores}


def _results(jobs: list[Job], processes: int) -> Iterator[dict[str, Any] | None]:
    if processes == 1:
        yield from map(measure, jobs)
        return
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(measure, jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    small = [name for name in DATA if "mnist" not in name and name != "imdb"]
    parser.add_argument("--only", nargs="*", choices=list(DATA), default=small)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=result_file("global-structure"))
    given = parser.parse_args()
    order = sorted(given.only, key=lambda name: -list(DATA).index(name))  # the larger ones first
    jobs = [(name, split, weight, given.data) for name in order for weight in WEIGHTS for split in range(SPLITS)]
    results: list[dict[str, Any]] = []
    for found in _results(jobs, given.processes):
        if found is not None:
            results.append(found)
            print(found, file=sys.stderr, flush=True)
    results.sort(key=lambda run: (list(DATA).index(run["data"]), run["weight"], run["split"]))
    record(given.out, results, seed="that of the split")


if __name__ == "__main__":
    main()
