"""Measure what checkpoints cost: the share of a long fit that goes into writing them.

python benchmarks/checkpoints.py                  a fit of ten minutes: write results/checkpoints.json
python benchmarks/checkpoints.py --device cuda    write results/checkpoints-gpu.json
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.datasets import load_digits

import dre.model.fitting
from dre import DRE
from dre.observe.checkpoints import Checkpoints
from dre.training.events import Event
from dre.training.run import Run
from record import record

SCHEDULE = "x: gaussian(30) -> kl * 500 from pca free 350 with 0.3*shepard follow 5 against bank"


class TimedCheckpoints(Checkpoints):
    """Remembers how long each write took, with taking the state."""

    seconds: ClassVar[list[float]] = []

    def _save(self, run: Run) -> None:
        began, before = time.perf_counter(), self._position
        super()._save(run)
        if self._position != before:
            self.seconds.append(time.perf_counter() - began)


def digits(n: int) -> Any:
    """Return digits with noise, repeated up to n rows."""
    images, rng = load_digits().data, np.random.default_rng(0)
    return (images[rng.integers(len(images), size=n)] + rng.normal(size=(n, 64))).astype(np.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--minutes", type=float, default=10.0, help="length of the fit")
    options.add_argument("--every", type=float, default=1.0, help="minutes between two checkpoints")
    options.add_argument("--device", default="cpu")
    chosen = options.parse_args()
    rows, began = digits(chosen.rows), time.perf_counter()

    def end(event: Event) -> None:
        if time.perf_counter() - began > 60 * chosen.minutes:
            event.run.end_fit()

    dre.model.fitting.Checkpoints = TimedCheckpoints  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "run")
        model = DRE(schedule=SCHEDULE, device=chosen.device, random_state=0)
        model.fit(rows, checkpoint=folder, checkpoint_minutes=chosen.every, observers=[end])
        size = max(entry.stat().st_size for entry in os.scandir(folder))
    seconds, writing = time.perf_counter() - began, TimedCheckpoints.seconds
    results = {
        "rows": chosen.rows,
        "seconds": seconds,
        "minutes_between": chosen.every,
        "checkpoints": len(writing),
        "megabytes": size / 1e6,
        "writing_seconds": sum(writing),
        "longest_seconds": max(writing),
        "share": sum(writing) / seconds,
    }
    record("checkpoints" if chosen.device == "cpu" else "checkpoints-gpu", results, seed=0)
    print(results)


if __name__ == "__main__":
    main()
