"""Speed of the InfiMNIST generator, in images per second.

    python benchmarks/infimnist.py --data FOLDER --images 100000

FOLDER has the files of MNIST, or a subfolder mnist with them. Runs on a CPU with one and with all threads, and on a GPU if
there is one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dre.datasets.infinite_mnist import BaseDigits, InfiMNIST
from record import record

FIRST = 70_000
BATCH = 2500  # rows of a training step
REPEATS = 5


def rate(job: Callable[[], object], images: int) -> float:
    """Images per second, the median of a few runs after an untimed one."""
    job()
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        job()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return round(images / statistics.median(seconds))


def rates(rows: InfiMNIST, images: int) -> dict[str, float]:
    device = rows.device
    ids = torch.randint(len(rows), (images,), generator=torch.Generator().manual_seed(0)).to(device)

    def read() -> None:
        for start in range(FIRST, FIRST + images, 8192):  # chunks of transform
            rows.read(start, min(start + 8192, FIRST + images))

    def take() -> None:
        for batch in ids.split(BATCH):  # batches of training
            rows.take(batch)

    return {"read": rate(read, images), "take": rate(take, images)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    arguments = parser.parse_args()
    digits = BaseDigits.from_mnist(arguments.data)
    results: list[dict[str, Any]] = []
    rows = InfiMNIST(digits, range(10**9), device="cpu")
    for threads in sorted({1, os.cpu_count() or 1}):
        torch.set_num_threads(threads)
        results.append({"device": "cpu", "threads": threads, **rates(rows, arguments.images // 5)})
        print(results[-1], flush=True)
    if torch.cuda.is_available():
        there = InfiMNIST(digits, range(10**9), device="cuda")
        results.append({"device": torch.cuda.get_device_name(), **rates(there, 10 * arguments.images)})
        print(results[-1], flush=True)
        same = torch.equal(there.images(FIRST, FIRST + 20_000).cpu(), rows.images(FIRST, FIRST + 20_000))
        results[-1]["bits_equal_those_of_the_cpu"] = same
    record("infimnist-gpu" if torch.cuda.is_available() else "infimnist", results, unit="images per second", batch=BATCH)


if __name__ == "__main__":
    main()
