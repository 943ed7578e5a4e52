"""A model of 300,000 images of InfiMNIST embeds 100 million others as a stream: seconds for each million, and memory.

python benchmarks/infinite_stream.py --data FOLDER --device cuda       # results/infinite-stream-gpu.json
python benchmarks/infinite_stream.py --data FOLDER --fitted 2000 --rows 100000 --piece 10000    # a try on a CPU
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier

from dre import DRE
from dre.datasets.infinite_mnist import infimnist
from record import record

FIRST = 70_000  # the first deformed image
STATUS = Path("/proc/self/status")


def memory(device: str) -> dict[str, float]:
    """Megabytes of this process: anonymous memory of the host, and memory of the GPU."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    found: dict[str, float] = {"anonymous_mb": round(int(lines["RssAnon"].split()[0]) / 1024)}
    if device == "cuda":
        found["gpu_mb"] = round(torch.cuda.memory_reserved() / 2**20)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fitted", type=int, default=300_000)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--piece", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = {"folder": arguments.data, "device": arguments.device}
    training = infimnist(FIRST, FIRST + arguments.fitted, **rows)
    began = time.perf_counter()
    model = DRE(device=arguments.device, random_state=arguments.seed).fit(training)
    fit_seconds = time.perf_counter() - began
    neighbors = KNeighborsClassifier(1).fit(model.embedding_, training.labels)
    print(f"fit of {arguments.fitted:,}: {fit_seconds:.1f} s", flush=True)
    seconds: list[float] = []
    curve: list[dict[str, float]] = []
    score = 0.0
    first = FIRST + arguments.fitted
    for start in range(first, first + arguments.rows, arguments.piece):
        stop = min(start + arguments.piece, first + arguments.rows)
        stream = infimnist(start, stop, **rows)
        began = time.perf_counter()
        embedding = model.transform(stream)
        seconds.append(round(time.perf_counter() - began, 3))
        assert np.isfinite(embedding).all()
        curve.append({"rows": stop - first, **memory(arguments.device)})
        if start == first:
            score = float(neighbors.score(embedding[:100_000], stream.labels[:100_000]))
        if len(seconds) % 10 == 1:
            print(f"{stop - first:,} rows: {seconds[-1]} s, {curve[-1]}, 1-NN {score:.4f}", flush=True)
    found: dict[str, Any] = {
        "fitted": arguments.fitted,
        "fit_seconds": round(fit_seconds, 1),
        "rows": arguments.rows,
        "seconds": round(sum(seconds), 1),
        "seconds_of_each_piece": seconds,
        "piece": arguments.piece,
        "memory": curve,
        "nearest_neighbor": round(score, 4),
    }
    record("infinite-stream" + ("-gpu" if arguments.device == "cuda" else ""), found, seed=arguments.seed)


if __name__ == "__main__":
    main()
