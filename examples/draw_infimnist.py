"""Digits of the endless stream: one of each kind, and what it becomes far apart in the stream.

    python examples/draw_infimnist.py FOLDER docs/infimnist.png

FOLDER holds MNIST, or a subfolder mnist of it; without one it is looked for in $DRE_DATA and in the cache, or downloaded.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from dre.datasets import infimnist

FIRST, ROUND = 10_000, 60_000  # the training digits begin at 10,000, and come again every 60,000 images
ROUNDS = (0, 1, 2, 5, 13, 34, 89, 233, 610, 1597, 4181, 10_946)  # in the first, nothing is deformed
SAMPLE = 5  # which digit of each kind
INK, PAPER, LINE = "#22252b", "#ffffff", "#d5d8de"


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    path = Path(sys.argv[2] if len(sys.argv) > 2 else "out/infimnist.png")
    stream = infimnist(0, FIRST + ROUND * (ROUNDS[-1] + 1), folder=folder)
    labels = stream[FIRST : FIRST + ROUND].labels
    chosen = FIRST + np.array([np.flatnonzero(labels == digit)[SAMPLE] for digit in range(10)])
    indices = chosen[:, None] + ROUND * np.array(ROUNDS)  # (10, 12)
    images = stream[indices.ravel()].images(0, indices.size).cpu().numpy().reshape(*indices.shape, 28, 28)

    figure, axes = plt.subplots(*indices.shape, figsize=(indices.shape[1] * 0.8, indices.shape[0] * 0.8 + 0.5), facecolor=PAPER)
    for (row, column), axis in np.ndenumerate(axes):
        axis.imshow(images[row, column], cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set(color=INK if column == 0 else LINE, linewidth=1.2 if column == 0 else 0.6)
        if row == 0:
            axis.set_title("MNIST" if column == 0 else f"{ROUNDS[column]:,}", color=INK, fontsize=9)
    caption = "outlined: the digit of MNIST; beside it, its deformation that many rounds of 60,000 images later"
    figure.text(0.5, 0.015, caption, ha="center", color=INK, fontsize=9)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.955, bottom=0.045, wspace=0.06, hspace=0.06)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"the digits are in {path}")


if __name__ == "__main__":
    main()
