"""The main job on the digits that ship with scikit-learn: fit, embed rows the network has not seen, score, draw.

Writes out/digits.png, the map after each stage beside that of PCA, and out/digits-distortion.png, the distortion of the last.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patheffects import withStroke
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from dre import DRE
from dre.metrics import evaluate
from dre.plot import distortion

Array = np.ndarray[Any, Any]
SHOWN = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "continuity", "shepard_goodness")
INK, PAPER = "#22252b", "#ffffff"


def draw(panels: list[tuple[str, Array, Array]], labels: Array, test_labels: Array, path: Path) -> None:
    colors = mpl.colormaps["tab10"]
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 5.4), facecolor=PAPER)
    for axis, (title, train, test) in zip(axes, panels, strict=True):
        axis.scatter(*train.T, c=labels, cmap=colors, vmin=0, vmax=9, s=7, alpha=0.35, linewidths=0)
        axis.scatter(*test.T, c=test_labels, cmap=colors, vmin=0, vmax=9, s=16, edgecolors=INK, linewidths=0.3)
        for digit in range(10):  # above the center of its cluster, in its color; medians ignore outliers
            of_digit = train[labels == digit]
            x, y = np.median(of_digit, axis=0)
            height = np.median(np.abs(of_digit[:, 1] - y))
            label = axis.annotate(str(digit), (x, y + 2 * height), xytext=(0, 3), textcoords="offset points", ha="center")
            label.set(fontsize=15, weight="bold", color=colors(digit), path_effects=[withStroke(linewidth=3, foreground=PAPER)])
        axis.margins(0.08)
        axis.set_title(title, color=INK, fontsize=12)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set_color("#d5d8de")
    figure.text(0.5, 0.02, "outlined: held-out rows, embedded by a forward pass", ha="center", color=INK, fontsize=10)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    digits = load_digits()
    rows, test_rows, labels, test_labels = train_test_split(
        digits.data, digits.target, test_size=0.25, stratify=digits.target, random_state=0
    )
    print(f"{len(rows)} training digits, {len(test_rows)} held out\n", flush=True)
    began = time.perf_counter()
    model = DRE(random_state=0, verbose=True).fit(rows)
    seconds = time.perf_counter() - began

    pca = PCA(2, random_state=0).fit(rows)
    maps = [("PCA", pca.transform(rows), pca.transform(test_rows))]
    for i, (stage, _) in enumerate(zip(model.schedule_, model.stages_, strict=False)):  # fewer after Ctrl-C
        name = "deep t-SNE" if i == 0 else f"recursion {i} ({stage.source})"
        maps.append((name, model.transform(rows, stage=i), model.transform(test_rows, stage=i)))

    print(f"\nfitted in {seconds:.0f} s; scores of the held-out rows, 1-NN against the training rows\n")
    print(" " * 18 + "".join(f"{score:>19s}" for score in SHOWN))
    for name, train, test in maps:
        result = evaluate(test_rows, test, test_labels, reference=(train, labels))
        print(f"{name:18s}" + "".join(f"{result[score]:19.3f}" for score in SHOWN))
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/digits.png")
    draw(maps, labels, test_labels, path)
    distorted = path.with_stem(f"{path.stem}-distortion")
    distortion(maps[-1][2], result).savefig(distorted, dpi=110)
    print(f"\nthe maps are in {path}, and the distortion of the last one in {distorted}")


if __name__ == "__main__":
    main()
