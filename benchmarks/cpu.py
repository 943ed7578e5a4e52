"""Waiting times on two CPU cores: the import, one row through a fitted map, many rows compared with UMAP.

    python benchmarks/cpu.py --data FOLDER

FOLDER has the four files of MNIST as published. An untimed first transform of UMAP compiles its code. Whole fits of all methods
are measured by `python benchmarks/bench.py --panels cpu`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from dre import DRE, Schedule
from dre.baselines import make
from dre.datasets import mnist
from dre.plan.overrides import Overrides, apply_overrides
from dre.plan.recipe import DataSpec, Recipe
from record import record

BASE_IMPORTS = "import torch, sklearn.base, sklearn.utils.validation"
ASKED = 10_000
Results = dict[str, Any]


def seconds(work: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return median(took)


def imports() -> Results:
    """Seconds of `import dre` and of `from dre import DRE`, in addition to torch and scikit-learn."""

    def of(statement: str) -> float:
        code = f"{BASE_IMPORTS}\nimport time\nbegan = time.perf_counter()\n{statement}\nprint(time.perf_counter() - began)"
        once = partial(subprocess.run, [sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return median(float(once().stdout) for _ in range(7))

    return {"import dre": round(of("import dre"), 4), "from dre import DRE": round(of("from dre import DRE"), 4)}


def short(n: int) -> Recipe:
    """The default recipe of a CPU for n images with one epoch: transform does not depend on the training time."""
    recipe = apply_overrides("auto", DataSpec(n, (1, 28, 28), "cpu"), Overrides())
    return replace(recipe, schedule=Schedule(replace(recipe.schedule[0], epochs=1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = mnist.load_mnist(parser.parse_args().data)
    results: Results = {"seconds_to_import": imports()}
    print(results, flush=True)
    images, tests = data.train.rows, data.test.rows[:ASKED]
    model = DRE(short(len(images)), random_state=0, device="cpu", verbose=False).fit(images[:20_000])
    model.transform(tests[:1])
    results["milliseconds_of_one_row"] = round(1000 * seconds(partial(model.transform, tests[:1]), 300), 3)
    dre_seconds = seconds(partial(model.transform, tests), 9)
    umap = make("umap", random_state=0).fit(images)
    umap.transform(tests[:100])
    umap_seconds = seconds(partial(umap.transform, tests), 3)
    about = {"rows": len(tests), "dre_seconds": round(dre_seconds, 4), "umap_seconds": round(umap_seconds, 3)}
    results["transform"] = {**about, "times_as_fast": round(umap_seconds / dre_seconds, 1)}
    print(results, flush=True)
    record("cpu", results, seed=0)


if __name__ == "__main__":
    main()
