"""Exact and approximate neighbor search on a CPU: the faster one at each size, and the recall of the approximate one.

    python benchmarks/neighbors.py --data FOLDER

FOLDER holds MNIST as published; rows are its images, or their leading principal components.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA

from dre.datasets import mnist
from dre.neighbors.search import nearest, select_method
from record import record

K = 90
SIZES = ((5000, 784), (10000, 784), (20000, 784), (60000, 784), (20000, 50), (60000, 50))


def timed(features: torch.Tensor, method: str) -> tuple[float, Any]:
    began = time.perf_counter()
    found = nearest(features, K, method=method)
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    images = mnist.load_mnist(parser.parse_args().data).train.rows.reshape(60000, -1).astype(np.float32)
    images -= images.mean(0)
    results = []
    for method in ("exact", "approximate"):
        timed(torch.from_numpy(images[:3000]), method)  # untimed first run
    for n, d in SIZES:
        rows = images[:n] if d == images.shape[1] else PCA(d, random_state=0).fit_transform(images[:n])
        features = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
        exact_seconds, exact = timed(features, "exact")
        seconds, approximate = timed(features, "approximate")
        hits = [len(np.intersect1d(a, b)) for a, b in zip(exact.indices.numpy(), approximate.indices.numpy(), strict=True)]
        results.append(
            {
                "n": n,
                "d": d,
                "exact_seconds": exact_seconds,
                "approximate_seconds": seconds,
                "recall": float(np.mean(hits)) / K,
                "stated_recall": approximate.recall,
                "chosen": select_method(features),
            }
        )
        print(results[-1], flush=True)
    record("neighbors", results, k=K)


if __name__ == "__main__":
    main()
