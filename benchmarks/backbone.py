"""Do the features of a trained network make a better map than pixels, and does training the network further keep it?

python benchmarks/backbone.py --data FOLDER      write results/backbone.json; FOLDER holds fashion-mnist/ and mnist/

A small convolutional network learns to classify images whose labels no map gets to see: other images of Fashion-MNIST, or the
digits of MNIST. Maps are fitted to 3,000 images of Fashion-MNIST without labels, and scored on 2,000 of its test images.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from dre import DRE, Backbone
from dre.datasets import load
from dre.metrics import neighborhood_hit
from record import record

Array = np.ndarray[Any, Any]
FITTED, SCORED, PRETRAINED = 3_000, 2_000, 20_000  # images
EPOCHS, BATCH = 3, 128  # of the classifier
SEEDS = (0, 1)
UNFROZEN = "features: gaussian(30) -> kl * 5 @ 0.0001 against bank unfreeze"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    folder = options.parse_args().data
    fashion, digits = load("fashion-mnist", folder=folder), load("mnist", folder=folder)
    later = slice(FITTED, FITTED + PRETRAINED)  # of the training images: the first are those of the maps
    networks = {
        "Fashion-MNIST": pretrained(fashion.train.rows[later], fashion.train.labels[later]),
        "MNIST": pretrained(digits.train.rows[later], digits.train.labels[later]),
    }
    X, held_out = fashion.train.rows[:FITTED], fashion.test.rows[:SCORED]
    labels = fashion.test.labels[:SCORED]
    found = {"pixels": [measure(DRE(random_state=seed), X, held_out, labels) for seed in SEEDS]}
    for name, network in networks.items():
        backbone = Backbone(network)
        plan = DRE(encoder=backbone).plan(X.shape).schedule
        for kind, schedule in (("frozen", None), ("unfrozen", f"{plan}\n{UNFROZEN}")):
            found[f"{name}, {kind}"] = [
                measure(DRE(encoder=backbone, schedule=schedule, random_state=seed), X, held_out, labels) for seed in SEEDS
            ]
    means = {name: {score: float(np.mean([each[score] for each in runs])) for score in runs[0]} for name, runs in found.items()}
    sizes = {"fitted": FITTED, "scored": SCORED, "pretrained": PRETRAINED}
    record("backbone", {"means": means, "runs": found}, seeds=list(SEEDS), images=sizes, unfrozen_stage=UNFROZEN)


def small_network() -> nn.Module:
    """A convolutional network of 64 features, without the layer that classifies."""
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


def pretrained(images: Array, labels: Array) -> nn.Module:
    """The network after it has learned to classify these images."""
    torch.manual_seed(0)
    network, head = small_network(), nn.Linear(64, 10)
    x = torch.from_numpy(np.asarray(images)).float().reshape(-1, 1, 28, 28) / 255
    y = torch.from_numpy(np.asarray(labels)).long()
    optimizer = torch.optim.Adam([*network.parameters(), *head.parameters()], 2e-3)
    for _ in range(EPOCHS):
        for ids in torch.randperm(len(x)).split(BATCH):
            loss = cross_entropy(head(network(x[ids])), y[ids])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def measure(model: DRE, X: Array, held_out: Array, labels: Array) -> dict[str, float]:
    """Neighborhood hit of images that were not fitted, and the seconds of the fit."""
    began = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - began
    hit = neighborhood_hit(model.transform(held_out), labels)
    print(model.recipe_.encoder, len(model.schedule_), f"hit {hit:.3f}, {seconds:.0f} s", flush=True)
    return {"neighborhood_hit": float(hit), "seconds": seconds}


if __name__ == "__main__":
    main()
