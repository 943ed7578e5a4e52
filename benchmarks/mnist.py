"""MNIST: fitted on 60,000 images, scored on the embedded 10,000 test images, after every stage, over several seeds.

    python benchmarks/mnist.py --data FOLDER --recipes paper auto --seeds 3

FOLDER holds the four files of MNIST as published, train-images-idx3-ubyte.gz and so on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dre import DRE
from dre.datasets import mnist
from dre.metrics import nearest_neighbor, neighborhood_hit, trustworthiness
from record import record

Array = np.ndarray[Any, Any]


def load(folder: Path) -> tuple[Array, Array, Array, Array]:
    data = mnist.load(folder)
    return data.train.rows, data.train.labels, data.test.rows, data.test.labels


def scores(model: DRE, data: tuple[Array, Array, Array, Array], stage: int) -> dict[str, Any]:
    images, labels, test_images, test_labels = data
    train, test = model.transform(images, stage=stage), model.transform(test_images, stage=stage)
    return {
        "stage": str(model.schedule_[stage]),
        "1nn": nearest_neighbor(test, test_labels, train=(train, labels)),
        "nh_paper": neighborhood_hit(test, test_labels, protocol="paper"),
        "nh": neighborhood_hit(test, test_labels),
        "trustworthiness": trustworthiness(test_images.astype(np.float32), test),
    }


def one_run(options: dict[str, Any], seed: int, data: tuple[Array, Array, Array, Array]) -> dict[str, Any]:
    began = time.perf_counter()
    model = DRE(**options, random_state=seed).fit(data[0])
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    stages = [scores(model, data, stage) for stage in range(len(model.stages_))]
    return {"seed": seed, "fit_seconds": round(seconds, 2), "stages": stages, "recipe": str(model.recipe_).splitlines()}


def mean_by_stage(runs: list[dict[str, Any]], score: str) -> list[float]:
    return [round(float(np.mean([run["stages"][i][score] for run in runs])), 4) for i in range(len(runs[0]["stages"]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--recipes", nargs="+", default=["paper", "auto"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--options", type=json.loads, default={}, help="further arguments of DRE, as JSON")
    arguments = parser.parse_args()
    data = load(arguments.data)
    for recipe in arguments.recipes:
        runs = [one_run({"recipe": recipe, **arguments.options}, seed, data) for seed in range(arguments.seeds)]
        means = {score: mean_by_stage(runs, score) for score in ("1nn", "nh_paper", "nh", "trustworthiness")}
        results = {"mean": means, "fit_seconds": [run["fit_seconds"] for run in runs], "runs": runs}
        print(recipe, {k: v for k, v in results.items() if k != "runs"}, flush=True)
        protocol = "fitted on 60,000, scored on 10,000 held-out images"
        record(f"mnist-{recipe}", results, protocol=protocol, seeds=arguments.seeds)


if __name__ == "__main__":
    main()
