"""A million rows of Gaussian clusters by dre and UMAP: seconds of a whole process, memory, and scores of held-out rows.

    python benchmarks/million.py                                # dre and UMAP, 8 and 50 columns: an hour and more on 2 cores
    python benchmarks/million.py --columns 8 --methods dre
    python benchmarks/million.py --device cuda --methods dre    # results/million-gpu.json

Each fit has a process and the machine to itself. What was measured before is kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dre.metrics import evaluate
from panel_process import FailedError, Process, Results, write
from record import record, result_file

ROWS, HELD_OUT, CLUSTERS = 1_000_000, 10_000, 12
METHODS = ("dre", "umap")
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "shepard_goodness")
Array = np.ndarray[Any, Any]


def clusters(rows: int, columns: int, seed: int = 0) -> tuple[Array, Array]:
    """Clusters that share three directions of variance, with noise in all columns; and the number of each row's cluster."""
    rng = np.random.default_rng(seed)
    centers, directions = 2 * rng.normal(size=(CLUSTERS, columns)), rng.normal(size=(min(3, columns), columns))
    labels = rng.integers(CLUSTERS, size=rows)
    X = centers[labels] + 0.5 * rng.normal(size=(rows, len(directions))) @ directions + 0.3 * rng.normal(size=(rows, columns))
    return X.astype(np.float32), labels


def measure(method: str, device: str, rows: int, columns: int) -> Results:
    X, labels = clusters(rows + HELD_OUT, columns)
    with tempfile.TemporaryDirectory() as folder, Process(method, device, warm=False) as process:
        data = Path(folder) / "data.npz"
        write(data, X[:rows], X[rows:])
        found, maps = process.fit(data, seed=0)
    scores = evaluate(X[rows:], maps["test_rows"], labels[rows:], reference=(maps["rows"], labels[:rows]))
    return {**{name: round(value, 1) for name, value in found.items()}, **{name: round(scores[name], 4) for name in SCORES}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 50])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    name = "million" if arguments.device == "cpu" else "million-gpu"
    results: Results = json.loads(result_file(name).read_text())["results"] if result_file(name).exists() else {}
    for columns in arguments.columns:
        for method in arguments.methods:
            try:
                found = measure(method, arguments.device, arguments.rows, columns)
            except FailedError as problem:
                found = {"failed": str(problem)}
            print(f"{arguments.rows:,} x {columns} {method}: {found}", flush=True)
            results.setdefault(f"{arguments.rows:,} x {columns}", {})[method] = found
            record(name, results, seed=0)


if __name__ == "__main__":
    main()
