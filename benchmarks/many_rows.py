"""More rows than are fitted at once, scaled down: a sample by coordinates, or all rows by edges of a graph in parts.

    python benchmarks/many_rows.py --data FOLDER          results/many-rows.json: half an hour and more on 2 cores

FOLDER holds the four files of MNIST. The rows are the first 50,000 training digits and deformations of them, as vectors; other
training digits are scored. No test row is used.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE
from dre.datasets.infinite_mnist import BaseDigits, InfiMNIST
from dre.metrics import evaluate
from dre.plan.recipes import default
from dre.training import graph_parts
from record import record

ROWS, TESTS, FIRST = 200_000, 5_000, 10_000
MNIST, TRAINING = 50_000, 60_000  # digits that are fitted, and training digits in all: the first rows are those of MNIST itself
REFERENCE = 100_000
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "shepard_goodness")
CASES = (  # rows, way, size of the sample or of a part, rows that the network of a sample sees in each phase
    (ROWS, "sample", 50_000, 0),
    (ROWS, "sample", 50_000, 1_500_000),
    (ROWS, "sample", ROWS, 0),
    (ROWS, "sample", ROWS - 1, 1_500_000),
    (ROWS, "parts", 50_000, 0),
    (MNIST, "sample", MNIST, 0),
    (MNIST, "parts", MNIST, 0),
    (MNIST, "parts", MNIST // 4, 0),
    (MNIST, "parts", MNIST // 8, 0),
)
Array = np.ndarray[Any, Any]


def digits(rows: InfiMNIST, indices: Array) -> tuple[Array, Array]:
    images = rows.at(indices)
    parts = [images.read(i, min(len(indices), i + 10_000)).flatten(1).cpu().numpy() for i in range(0, len(indices), 10_000)]
    return np.concatenate(parts).astype(np.float32), np.asarray(images.labels)


def fitted_indices(rows: int) -> Array:
    """Numbers in the stream of the first rows that are digits, or deformations of digits, which are fitted."""
    stream = FIRST + np.arange(rows * TRAINING // MNIST + TRAINING)
    return stream[(stream - FIRST) % TRAINING < MNIST][:rows]


def measure(rows: int, way: str, size: int, visits: int, folder: Path) -> dict[str, Any]:
    stream = InfiMNIST(BaseDigits.from_mnist(folder), range(FIRST), device="cpu")
    (X, labels), (tests, test_labels) = digits(stream, fitted_indices(rows)), digits(stream, FIRST + MNIST + np.arange(TESTS))
    default.SAMPLE_VISITS, default.MOST["cpu"], default.EPOCH_ROWS = visits, rows if way == "sample" else rows - 1, rows
    for limits in (graph_parts.SEARCHED, graph_parts.PART):
        limits["cpu"] = 2**20 if way == "sample" else size
    model = DRE(sample=size if way == "sample" else rows, random_state=0, device="cpu")
    began = time.perf_counter()
    model.fit(X)
    seconds = round(time.perf_counter() - began, 1)
    known = np.linspace(0, rows - 1, min(rows, REFERENCE)).astype(np.int64)
    scores = evaluate(tests, model.transform(tests), test_labels, reference=(model.embedding_[known], labels[known]))
    about = {"rows": rows, "way": way, "size": size, "visits": visits, "seconds": seconds}
    return {**about, **{name: round(float(scores[name]), 4) for name in SCORES}, "schedule": str(model.schedule_)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for case in CASES:
        results.append(measure(*case, arguments.data))
        print(results[-1], flush=True)
        record("many-rows", results, seed=0)


if __name__ == "__main__":
    main()
