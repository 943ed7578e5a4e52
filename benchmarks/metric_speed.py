"""Does another metric cost time? Fits of real sentence vectors under the cosine and the Euclidean metric, in turn.

python benchmarks/metric_speed.py --data FOLDER      write results/metric-speed.json; FOLDER holds imdb/

The vectors are those of sentences.py, which --vectors FOLDER keeps for the next time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dre import DRE
from dre.metrics import trustworthiness
from record import record
from sentences import ENCODER, load_sentences

Array = np.ndarray[Any, Any]
REVIEWS = 5_000
REPEATS = 7
METRICS = ("euclidean", "cosine")
OTHERS = ("correlation", "manhattan", "chebyshev", "canberra", "braycurtis")  # timed once: neighbors are searched in blocks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--vectors", type=Path, metavar="FOLDER", help="folder that keeps the sentence vectors")
    options.add_argument("--reviews", type=int, default=REVIEWS)
    options.add_argument("--repeats", type=int, default=REPEATS)
    chosen = options.parse_args()
    rows = load_sentences(chosen.data, chosen.vectors, chosen.reviews).vectors
    found = compare(rows, chosen.repeats)
    record("metric-speed", {**found, "others": {metric: fit(rows, metric, 0) for metric in OTHERS}}, encoder=ENCODER)


def compare(rows: Array, repeats: int) -> dict[str, Any]:
    """Seconds of both metrics, in turn, and the ratio of their medians; the first of each warms the process up."""
    for metric in METRICS:
        fit(rows, metric, 0)
    runs = [{metric: fit(rows, metric, seed) for metric in METRICS} for seed in range(repeats)]
    seconds = {metric: [run[metric]["seconds"] for run in runs] for metric in METRICS}
    return {
        "rows": len(rows),
        "columns": rows.shape[1],
        "seconds": seconds,
        "median_seconds": {metric: round(median(each), 3) for metric, each in seconds.items()},
        # Of runs that follow each other: whatever else the machine does slows both.
        "cosine_to_euclidean": round(median(run["cosine"]["seconds"] / run["euclidean"]["seconds"] for run in runs), 3),
        "trustworthiness": {metric: runs[0][metric]["trustworthiness"] for metric in METRICS},
    }


def fit(rows: Array, metric: str, seed: int) -> dict[str, Any]:
    """Seconds of a fit, and the trustworthiness of its map under its own metric."""
    began = time.perf_counter()
    model = DRE(metric=metric, random_state=seed, device="cpu").fit(rows)
    seconds = round(time.perf_counter() - began, 3)
    trust = trustworthiness(rows, model.embedding_, metric=metric, device="cpu") if seed == 0 else None
    return {
        "seconds": seconds,
        "stages": len(model.stages_),
        "trustworthiness": None if trust is None else round(float(trust), 4),
    }


if __name__ == "__main__":
    main()
