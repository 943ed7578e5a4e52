"""8.1 million deformed digits as in MNIST8M, embedded and drawn on one GPU; a stream generates them as needed.

    python benchmarks/mnist8m.py --data FOLDER              fit the first million, embed all, count the points per pixel
    python benchmarks/mnist8m.py --data FOLDER --fit 8100000
    python benchmarks/mnist8m.py --draw PICTURE.webp         draw the counts

FOLDER holds the four files of MNIST as published. The digits are those of index 10,000 to 8,110,000 of the stream: MNIST's
training set and its deformations; its test set is scored by the map.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dre import DRE
from dre.datasets import infimnist
from dre.metrics import nearest_neighbor
from record import record

FIRST, COUNT, TESTS = 10_000, 8_100_000, 10_000
FITTED = 1_000_000  # each part of the stream deforms all digits of MNIST in turn, so that the first part is a fair sample
SIDE, CLOSE_UP = 1400, 420  # pixels per side of the whole map and of each close-up
COARSE = 500  # pixels per side, of which the share that has points is measured
CENTRAL = 0.9995  # quantile of each axis that the whole map shows
MOST = 0.95  # quantile of a digit's points that its close-up shows
GIB = 2**30
Array = np.ndarray[Any, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--digits", type=int, default=COUNT)
    parser.add_argument("--fit", type=int, default=FITTED, metavar="N", help="digits that the network learns from")
    parser.add_argument("--draw", type=Path, metavar="PICTURE")
    arguments = parser.parse_args()
    counts = Path(os.environ.get("DRE_RESULTS", "out")) / "mnist8m-counts.npz"
    if arguments.draw:
        with np.load(counts) as counted:
            draw(Counted(**counted), arguments.draw)
    else:
        measure(arguments.data, arguments.digits, arguments.fit, counts)


def measure(folder: Path, digits: int, fitted: int, counts: Path) -> None:
    rows = infimnist(FIRST, FIRST + digits, folder=folder)
    tests = infimnist(0, TESTS, folder=folder)
    model = DRE(random_state=0, verbose=True)
    took: dict[str, float] = {}
    torch.cuda.reset_peak_memory_stats()
    _timed(took, "fit", partial(model.fit, infimnist(FIRST, FIRST + min(fitted, digits), folder=folder)))
    peak = torch.cuda.max_memory_allocated() / GIB
    Y = _timed(took, "embed", partial(model.transform, rows))
    held_out = model.transform(tests)
    score = nearest_neighbor(held_out, tests.labels, reference=(Y, rows.labels))
    counted = _timed(took, "count", partial(count, Y, rows.labels))
    counts.parent.mkdir(exist_ok=True)
    np.savez_compressed(counts, **counted._asdict())
    results = {
        "digits": digits,
        "fitted": min(fitted, digits),
        "seconds": {name: round(seconds, 1) for name, seconds in took.items()},
        "peak_gib": round(peak, 1),
        "1nn_of_the_test_set": score,
        **share_of_pixels(Y, rows.labels),
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


@dataclass(frozen=True)
class PixelGrid:
    """A square of the map, cut into pixels: its center and half its side."""

    middle: Array
    reach: float

    @classmethod
    def around(cls, Y: Array, low: float, high: float) -> PixelGrid:
        """Return the square between two quantiles of each axis, with a margin."""
        corners = np.quantile(Y, (low, high), axis=0)
        return cls(corners.mean(0), float(np.ptp(corners, axis=0).max()) * 0.53)

    def pixels(self, Y: Array, side: int) -> Array:
        return np.floor((Y - self.middle + self.reach) / (2 * self.reach) * side).astype(np.int64)

    def count(self, Y: Array, labels: Array, side: int) -> Array:
        """Count the points of each class in each pixel, (classes, side, side)."""
        pixel = self.pixels(Y, side)
        inside = ((pixel >= 0) & (pixel < side)).all(1)
        flat = (labels[inside].astype(np.int64) * side + pixel[inside, 1]) * side + pixel[inside, 0]
        classes = int(labels.max()) + 1
        return np.bincount(flat, minlength=classes * side * side).reshape(classes, side, side).astype(np.uint32)


class Counted(NamedTuple):
    """Points of each class per pixel, of the whole map and of a close-up of each class; and the centers of the classes."""

    whole: Array
    close_ups: Array
    middles: Array


def count(Y: Array, labels: Array) -> Counted:
    whole = PixelGrid.around(Y, 1 - CENTRAL, CENTRAL)
    digits = [Y[labels == digit] for digit in np.unique(labels)]
    close = [PixelGrid.around(each, 1 - MOST, MOST) for each in digits]
    return Counted(
        whole.count(Y, labels, SIDE),
        np.stack([grid.count(Y, labels, CLOSE_UP) for grid in close]),
        whole.pixels(np.stack([np.median(each, axis=0) for each in digits]), SIDE),
    )


def share_of_pixels(Y: Array, labels: Array) -> dict[str, float]:
    """Shares of the coarse pixels of the whole map that have a point, and that have ten."""
    points = PixelGrid.around(Y, 1 - CENTRAL, CENTRAL).count(Y, labels, COARSE).sum(0)
    return {"pixels_with_a_point": float((points > 0).mean()), "pixels_with_ten_points": float((points >= 10).mean())}


def draw(counted: Counted, path: Path) -> None:
    """Draw the whole map in the middle and a close-up of each digit at its sides."""
    from dre.plot.style import BACKGROUND, FRAME, TEXT, pyplot

    figure = pyplot().figure(figsize=(14.6, 10), facecolor=BACKGROUND, layout="constrained")
    beside = [[f"{left}", "all", f"{left + 5}"] for left in range(5)]
    axes = figure.subplot_mosaic(beside, width_ratios=(1, 5, 1), gridspec_kw={"wspace": 0.02, "hspace": 0.02})
    axes["all"].imshow(shade(counted.whole), origin="lower", interpolation="lanczos")
    for digit, close_up in enumerate(counted.close_ups):
        axes[str(digit)].imshow(shade(close_up), origin="lower", interpolation="lanczos")
        axes[str(digit)].set_title(str(digit), color=TEXT, fontsize=11, pad=3)
        x, y = counted.middles[digit]
        axes["all"].text(x, y, str(digit), color=TEXT, fontsize=18, ha="center", va="center")
    for axis in axes.values():
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_color(FRAME)
    figure.savefig(path, dpi=100)


def shade(counts: Array) -> Array:
    """Return an image: each pixel has the mean color of its points, with an opacity by the rank of their number."""
    from dre.plot.colors import class_colors

    colors = np.array([color[:3] for color in class_colors(len(counts))])
    total = counts.sum(0, dtype=np.int64)
    hue = np.einsum("kyx,kc->yxc", counts, colors) / np.maximum(total, 1)[..., None]
    there = total > 0
    ranks = np.unique(total[there], return_inverse=True)[1]
    share = np.cumsum(np.bincount(ranks)) / len(ranks)
    strength = np.zeros(total.shape)
    strength[there] = 0.15 + 0.85 * share[ranks]
    picture: Array = np.clip(1 - strength[..., None] * (1 - hue), 0, 1)
    return picture


if __name__ == "__main__":
    main()
