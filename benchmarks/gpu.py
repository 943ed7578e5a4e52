"""How fast a GPU is put to use: steps, whole fits from a cold process and a warm one, growing data, the graph, transform.

    python benchmarks/gpu.py --data FOLDER
    python benchmarks/gpu.py --data FOLDER --only step fit --largest 300000

FOLDER holds the four files of MNIST as published. Seconds are those of a GPU that nothing else uses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
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
from dre.datasets import infimnist, mnist
from dre.distances import Distances
from dre.metrics import nearest_neighbor, neighborhood_hit
from dre.neighbors import nearest
from dre.order import nearest_to
from dre.recipe import Facts, Overrides, Recipe, resolve
from record import record

GIB = 2**30
SIZES = (60_000, 125_000, 250_000, 300_000, 500_000, 1_000_000)
QUERIES = 10_000
Found = dict[str, Any]


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    torch.cuda.synchronize()
    began = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - began, result


def recipe(name: str, precision: str = "auto") -> Recipe:
    return replace(resolve(name, Facts(60_000, (1, 28, 28), "cuda"), Overrides()), precision=precision)


def ceilings(_: argparse.Namespace) -> Found:
    """What the card gives: products in each precision, in TFLOP/s, and copies, in GB/s of reading and writing."""
    a = torch.randn(8192, 8192, device="cuda")
    found: Found = {}
    for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float64", torch.float64)):
        b = a.to(kind)
        seconds(partial(torch.mm, b, b))
        times = [seconds(partial(torch.mm, b, b))[0] for _ in range(10)]
        found[f"{name}_tflops"] = round(2 * 8192**3 / median(times) / 1e12, 1)
    big = torch.empty(2**30, dtype=torch.uint8, device="cuda").random_()
    into = torch.empty_like(big)
    found["copy_gb_per_s"] = round(2 * 2**30 / median(seconds(partial(into.copy_, big))[0] for _ in range(10)) / 1e9)
    return found


def step(arguments: argparse.Namespace) -> Found:
    """Milliseconds of a step of training within a fit, from the draw to the update: the median of its later epochs."""
    images = mnist.load(arguments.data).train.rows
    first = {name: Schedule(replace(recipe(name).schedule[0], epochs=12)) for name in ("paper", "auto")}
    with_norm = replace(recipe("paper", "bfloat16"), encoder=ModelB(norm=True), schedule=first["paper"])
    plans = {
        "Model B, 2500 images, bfloat16": replace(recipe("paper", "bfloat16"), schedule=first["paper"]),
        "Model B with batch norm, 2500 images, bfloat16": with_norm,
        "Model B, 2500 images, float32": replace(recipe("paper", "float32"), schedule=first["paper"]),
        "the default, 5000 images": replace(recipe("auto"), schedule=first["auto"]),
    }
    found: Found = {}
    for name, plan in plans.items():
        model = DRE(plan, random_state=0, verbose=False).fit(images)
        epochs = [epoch["seconds"] for epoch in model.history_][4:]
        found[name] = round(1000 * median(epochs) / plan.batches.steps(len(images)), 3)
    return found


def fit(arguments: argparse.Namespace) -> Found:
    """Seconds of a fit of MNIST in a process that has just begun, imports apart, and again in that process; its scores."""
    found: Found = {}
    for name, precision in (("auto", "auto"), ("paper", "bfloat16"), ("paper", "float32")):
        command = [sys.executable, __file__, "--data", str(arguments.data), "--cold", name, precision]
        found[f"{name}, {precision}"] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def cold(folder: Path, name: str, precision: str) -> Found:
    data = mnist.load(folder)
    runs: Found = {}
    for label in ("cold", "warm"):
        torch.cuda.reset_peak_memory_stats()
        model = DRE(recipe(name, precision), random_state=0, verbose=False)
        runs[f"{label}_seconds"] = round(seconds(partial(model.fit, data.train.rows))[0], 2)
        test = model.transform(data.test.rows)
        known = (model.embedding_, data.train.labels)
        runs[label] = {
            "1nn": nearest_neighbor(test, data.test.labels, train=known),
            "nh_paper": neighborhood_hit(test, data.test.labels, protocol="paper"),
            "peak_gib": round(torch.cuda.max_memory_allocated() / GIB, 2),
        }
    return runs


def sizes(arguments: argparse.Namespace) -> list[Found]:
    """Fits of more and more deformed digits, made on the GPU as they are asked for, and their maps."""
    found = []
    for n in [size for size in SIZES if size <= arguments.largest]:
        rows = infimnist(70_000, 70_000 + n, folder=arguments.data)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model = DRE(random_state=0, verbose=False)
        took = seconds(partial(model.fit, rows))[0]
        embedding = seconds(partial(model.transform, rows))[0]
        times = {"fit_seconds": round(took, 2), "transform_seconds": round(embedding, 2)}
        found.append({"n": n, **times, "peak_gib": round(torch.cuda.max_memory_allocated() / GIB, 2)})
        print(found[-1], flush=True)
    return found


def graph(arguments: argparse.Namespace) -> list[Found]:
    """The 90 nearest neighbours of every row, and the share of those in float64 that are among them."""
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
    """By distance: among duplicates any of them will do."""
    asked = torch.linspace(0, len(rows) - 1, QUERIES, device=rows.device).long()
    exact = Distances(rows, torch.double)
    reach = nearest_to(exact, rows[asked], indices.shape[1], asked).squared[:, -1:]
    ours = exact.direct(rows[asked], indices[asked])
    return float((ours <= reach * (1 + 1e-12)).double().mean())


def transform(arguments: argparse.Namespace) -> Found:
    """A million images, as bytes in the memory of the host, to their places in the map."""
    data = mnist.load(arguments.data)
    many = np.resize(data.train.rows, (1_000_000, *data.train.rows.shape[1:]))
    found: Found = {}
    for name in ("auto", "paper"):
        short = replace(recipe(name), schedule=Schedule(replace(recipe(name).schedule[0], epochs=1)))
        model = DRE(short, random_state=0, verbose=False).fit(data.train.rows)
        found[name] = [round(seconds(partial(model.transform, many))[0], 2) for _ in range(3)]
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "ceilings": ceilings,
    "step": step,
    "fit": fit,
    "sizes": sizes,
    "graph": graph,
    "transform": transform,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows, at most")
    parser.add_argument("--cold", nargs=2, help=argparse.SUPPRESS)  # what `fit` calls, in a process of its own
    arguments = parser.parse_args()
    if arguments.cold:
        print(json.dumps(cold(arguments.data, *arguments.cold)))
        return
    for name in arguments.only:
        results = PARTS[name](arguments)
        print(name, results, flush=True)
        record(f"gpu-{name}", results, protocol=str(PARTS[name].__doc__).strip(), seed=0)


if __name__ == "__main__":
    main()
