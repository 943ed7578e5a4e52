"""The 8.1 million digits of MNIST8M's kind, fitted, embedded and drawn on one GPU, from a stream that makes them as needed.

    python benchmarks/mnist8m.py --data FOLDER              fit, embed, count what lies where
    python benchmarks/mnist8m.py --draw PICTURE.png         draw what was counted

FOLDER holds the four files of MNIST as published. The digits are those of index 10,000 to 8,110,000 of the stream: MNIST's
training set and its deformations; its test set is scored by the map.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dre import DRE
from dre.datasets import infimnist
from dre.metrics import nearest_neighbor
from record import record

FIRST, COUNT, TESTS = 10_000, 8_100_000, 10_000
SIDE = 1400  # pixels of the picture
CENTRAL = 0.9995  # quantile of each axis, at either end, that the picture reaches to
GIB = 2**30
Array = np.ndarray[Any, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--digits", type=int, default=COUNT)
    parser.add_argument("--draw", type=Path, metavar="PICTURE")
    arguments = parser.parse_args()
    counts = Path(os.environ.get("DRE_RESULTS", "out")) / "mnist8m-counts.npz"
    if arguments.draw:
        draw(np.load(counts)["counts"], arguments.draw)
    else:
        measure(arguments.data, arguments.digits, counts)


def measure(folder: Path, digits: int, counts: Path) -> None:
    rows = infimnist(FIRST, FIRST + digits, folder=folder)
    tests = infimnist(0, TESTS, folder=folder)
    model = DRE(random_state=0, verbose=True)
    took: dict[str, float] = {}
    torch.cuda.reset_peak_memory_stats()
    _timed(took, "fit", partial(model.fit, rows))
    peak = torch.cuda.max_memory_allocated() / GIB
    places = _timed(took, "embed", partial(model.transform, rows))
    held_out = model.transform(tests)
    score = nearest_neighbor(held_out, tests.labels, train=(places, rows.labels))
    counted = _timed(took, "count", partial(count, places, rows.labels))
    counts.parent.mkdir(exist_ok=True)
    np.savez_compressed(counts, counts=counted)
    results = {
        "digits": digits,
        "seconds": {name: round(seconds, 1) for name, seconds in took.items()},
        "peak_gib": round(peak, 1),
        "1nn_of_the_test_set": score,
        "recipe": str(model.recipe_).splitlines(),
    }
    print(results, flush=True)
    record("mnist8m", results, seed=0)


def _timed(took: dict[str, float], name: str, work: Any) -> Any:
    began = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    took[name] = time.perf_counter() - began
    return result


def count(places: Array, labels: Array) -> Array:
    """(classes, SIDE, SIDE): how many points of each class lie in each pixel."""
    low, high = np.quantile(places, (1 - CENTRAL, CENTRAL), axis=0)
    middle, reach = (low + high) / 2, (high - low).max() * 0.53
    pixel = np.floor((places - middle + reach) / (2 * reach) * SIDE).astype(np.int64)
    inside = ((pixel >= 0) & (pixel < SIDE)).all(1)
    flat = (labels[inside].astype(np.int64) * SIDE + pixel[inside, 1]) * SIDE + pixel[inside, 0]
    return np.bincount(flat, minlength=(int(labels.max()) + 1) * SIDE * SIDE).reshape(-1, SIDE, SIDE).astype(np.uint32)


def draw(counts: Array, path: Path) -> None:
    """Each pixel has the mean colour of its points, the stronger the more there are, on a scale of equal ranks."""
    from matplotlib.image import imsave

    from dre.plot.look import class_colours

    colours = np.array([colour[:3] for colour in class_colours(len(counts))])
    total = counts.sum(0, dtype=np.int64)
    hue = np.einsum("kyx,kc->yxc", counts, colours) / np.maximum(total, 1)[..., None]
    there = total > 0
    ranks = np.unique(total[there], return_inverse=True)[1]
    share = np.cumsum(np.bincount(ranks)) / len(ranks)
    strength = np.zeros(total.shape)
    strength[there] = 0.15 + 0.85 * share[ranks]
    picture = 1 - strength[..., None] * (1 - hue)
    imsave(path, np.clip(picture[::-1], 0, 1))


if __name__ == "__main__":
    main()
