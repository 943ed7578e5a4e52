"""Speed on a GPU: training steps, cold and warm fits, growing data, the neighbor graph, transform, rows from host memory.

    python benchmarks/gpu.py --data FOLDER
    python benchmarks/gpu.py --data FOLDER --only step fit --largest 300000

FOLDER holds the four files of MNIST as published. Seconds are those of a GPU that nothing else uses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre import DRE, ModelB, Schedule
from dre.batches import Shuffled
from dre.data.rows import HostRows
from dre.datasets import infimnist, mnist
from dre.datasets.dataset import Dataset
from dre.metrics import nearest_neighbor, neighborhood_hit, trustworthiness
from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_to
from dre.neighbors.search import nearest
from dre.plan.overrides import Overrides, apply_overrides
from dre.plan.recipe import DataSpec, Recipe
from dre.training.events import Event, StageBegan
from record import record

GIB = 2**30
SIZES = (60_000, 125_000, 250_000, 300_000, 500_000, 1_000_000)
QUERIES = 10_000
Results = dict[str, Any]


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    torch.cuda.synchronize()
    began = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - began, result


def recipe(name: str, precision: str = "auto") -> Recipe:
    return replace(apply_overrides(name, DataSpec(60_000, (1, 28, 28), "cuda"), Overrides()), precision=precision)


def ceilings(_: argparse.Namespace) -> Results:
    """Limits of the card: matrix products in each precision, in TFLOP/s, and copies, in GB/s of reading and writing."""
    a = torch.randn(8192, 8192, device="cuda")
    found: Results = {}
    for name, kind in (
        ("float32", torch.float32),
        ("tf32", torch.float32),
        ("bfloat16", torch.bfloat16),
        ("float64", torch.float64),
    ):
        b = a.to(kind)
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
        seconds(partial(torch.mm, b, b))
        times = [seconds(partial(torch.mm, b, b))[0] for _ in range(10)]
        found[f"{name}_tflops"] = round(2 * 8192**3 / median(times) / 1e12, 1)
    big = torch.empty(2**30, dtype=torch.uint8, device="cuda").random_()
    into = torch.empty_like(big)
    found["copy_gb_per_s"] = round(2 * 2**30 / median(seconds(partial(into.copy_, big))[0] for _ in range(10)) / 1e9)
    return found


def step(arguments: argparse.Namespace) -> Results:
    """Milliseconds of a training step, from sampling to the update: the median of the later epochs of a fit."""
    images = mnist.load_mnist(arguments.data).train.rows
    paper = replace(first_stage_of("paper", 12), precision="bfloat16")
    recipes = {
        "Model B, 2500 images, bfloat16": paper,
        "Model B with batch norm, 2500 images, bfloat16": replace(paper, encoder=ModelB(norm=True)),
        "Model B, 2500 images, float32": replace(paper, precision="float32"),
        "the default, 5000 images": first_stage_of("auto", 12),
    }
    found: Results = {}
    for name, trained in recipes.items():
        model = DRE(trained, random_state=0, verbose=False).fit(images)
        epochs = [epoch["seconds"] for epoch in model.history_][4:]
        found[name] = round(1000 * median(epochs) / trained.batches.steps(len(images)), 3)
    return found


def fit(arguments: argparse.Namespace) -> Results:
    """Seconds of a fit of MNIST without imports: the first on the machine, which compiles kernels to disk; the first in a
    process; and the second in it."""
    found: Results = {}
    for name, precision, processes in (
        ("auto", "auto", (("new",), ("cold", "warm"))),
        ("paper", "bfloat16", (("new",), ("cold", "warm"))),
        ("paper", "float32", (("new",),)),
    ):
        with tempfile.TemporaryDirectory() as kernels:
            of_recipe: Results = {}
            for labels in processes:
                command = [sys.executable, __file__, "--data", str(arguments.data), "--alone", name, precision, *labels]
                environment = {**os.environ, "TRITON_CACHE_DIR": kernels}
                made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
                of_recipe |= json.loads(made.stdout)
        found[f"{name}, {precision}"] = of_recipe
        print(found, flush=True)
    return found


def alone(folder: Path, name: str, precision: str, *labels: str) -> Results:
    data = mnist.load_mnist(folder)
    found: Results = {}
    for label in labels:
        model = DRE(recipe(name, precision), random_state=0, verbose=False)
        began = time.perf_counter()  # before the first use of the GPU, whose start counts too
        model.fit(data.train.rows)
        torch.cuda.synchronize()
        took = round(time.perf_counter() - began, 2)
        peak = round(torch.cuda.max_memory_allocated() / GIB, 2)
        found[label] = {"seconds": took, "peak_gib": peak, **scores(model, data)}
    return found


def scores(model: DRE, data: Dataset) -> Results:
    test, labels = model.transform(data.test.rows), data.test.labels
    return {
        "1nn": nearest_neighbor(test, labels, reference=(model.embedding_, data.train.labels)),
        "nh_paper": neighborhood_hit(test, labels, protocol="paper"),
        "trustworthiness": trustworthiness(data.test.rows.reshape(len(test), -1).astype(np.float32), test, device="cuda"),
    }


def sizes(arguments: argparse.Namespace) -> list[Results]:
    """Fits of growing numbers of deformed digits, generated on the GPU as they are read, scored on MNIST's test set."""
    test = mnist.load_mnist(arguments.data).test
    DRE(recipe("auto"), random_state=0, verbose=False).fit(infimnist(70_000, 90_000, folder=arguments.data))  # warm
    found = []
    for n in [size for size in SIZES if size <= arguments.largest]:
        rows = infimnist(70_000, 70_000 + n, folder=arguments.data)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model, graphs = DRE(random_state=0, verbose=False), Graphs()
        took = seconds(partial(model.fit, rows, observers=[graphs]))[0]
        peak = torch.cuda.max_memory_allocated() / GIB  # of the fit alone
        transform_seconds, Y = seconds(partial(model.transform, rows))
        hit = nearest_neighbor(model.transform(test.rows), test.labels, reference=(Y, rows.labels), device="cuda")
        times = {"fit_seconds": took, "of_which_graphs": graphs.seconds, "transform_seconds": transform_seconds}
        found.append(
            {"n": n, **{name: round(value, 3) for name, value in times.items()}, "peak_gib": round(peak, 2), "1nn": hit}
        )
        print(found[-1], flush=True)
    return found


class Graphs:
    """Observer that sums the seconds of targets: features, neighbor search, bandwidths."""

    seconds = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            self.seconds += event.seconds


def graph(arguments: argparse.Namespace) -> list[Results]:
    """The 90 nearest neighbors of every row, and their recall against float64."""
    found = []
    for n in [size for size in (60_000, 250_000, 1_000_000) if size <= arguments.largest]:
        rows = infimnist(70_000, 70_000 + n, folder=arguments.data).read(0, n).cuda().flatten(1).float()
        torch.cuda.reset_peak_memory_stats()
        nearest(rows[:20_000], 90)
        took, neighbors = seconds(partial(nearest, rows, 90))
        rate = 2 * n * n * rows.shape[1] / took / 1e12
        about = {"n": n, "d": rows.shape[1], "seconds": round(took, 2), "tflops_of_all_pairs": round(rate, 1)}
        peak = round(torch.cuda.max_memory_allocated() / GIB, 2)
        found.append({**about, "peak_gib": peak, "recall": recall(rows, neighbors.indices)})
        print(found[-1], flush=True)
    return found


def recall(rows: Tensor, indices: Tensor) -> float:
    """Recall by distance, since duplicates are interchangeable."""
    asked = torch.linspace(0, len(rows) - 1, QUERIES, device=rows.device).long()
    exact = Distances(rows, torch.double)
    reach = nearest_to(exact, rows[asked], indices.shape[1], asked).squared[:, -1:]
    distances = exact.direct(rows[asked], indices[asked])
    return int((distances <= reach * (1 + 1e-12)).sum()) / distances.numel()


def transform(arguments: argparse.Namespace) -> Results:
    """Seconds to embed a million images, as bytes in host memory."""
    data = mnist.load_mnist(arguments.data)
    many = np.resize(data.train.rows, (1_000_000, *data.train.rows.shape[1:]))
    found: Results = {}
    for name in ("auto", "paper"):
        model = DRE(first_stage_of(name, 1), random_state=0, verbose=False).fit(data.train.rows)
        found[name] = [round(seconds(partial(model.transform, many))[0], 2) for _ in range(3)]
    return found


def stream(arguments: argparse.Namespace) -> Results:
    """Milliseconds of a step with images on the GPU, and with batches read from host memory."""
    images = mnist.load_mnist(arguments.data).train.rows
    shuffled = replace(first_stage_of("paper", 12), precision="bfloat16", encoder=ModelB(norm=True))
    shuffled = replace(shuffled, batches=Shuffled(2500), schedule=Schedule.parse("x: gaussian(30) -> kl * 12"))
    steps = shuffled.batches.steps(len(images))
    found: Results = {}
    for name, rows in (("held on the GPU", images), ("read from the host", HostRows(images))):
        model = DRE(shuffled, random_state=0, verbose=False).fit(rows)
        found[name] = round(1000 * median(epoch["seconds"] for epoch in model.history_[4:]) / steps, 3)
    return found


def first_stage_of(name: str, epochs: int) -> Recipe:
    return replace(recipe(name), schedule=Schedule(replace(recipe(name).schedule[0], epochs=epochs)))


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "ceilings": ceilings,
    "step": step,
    "fit": fit,
    "sizes": sizes,
    "graph": graph,
    "transform": transform,
    "stream": stream,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows, at most")
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)  # called by `fit` in its own process
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(alone(arguments.data, *arguments.alone)))
        return
    for name in arguments.only:
        results = PARTS[name](arguments)
        print(name, results, flush=True)
        record(f"gpu-{name}", results, protocol=" ".join(str(PARTS[name].__doc__).split()), seed=0)


if __name__ == "__main__":
    main()
