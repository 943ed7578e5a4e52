"""The main job on the digits that ship with scikit-learn: fit, embed rows the network has not seen, score, draw.

Writes out/digits.png, the held-out rows after each stage beside their PCA, and out/digits-distortion.png, the distortion of
the last map.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from dre import DRE, plot
from dre.metrics import evaluate

SHOWN = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "continuity", "shepard_goodness")


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
    maps = {"PCA": (pca.transform(rows), pca.transform(test_rows))}
    for i, (stage, _) in enumerate(zip(model.schedule_, model.stages_, strict=False)):  # fewer after Ctrl-C
        name = "deep t-SNE" if i == 0 else f"recursion {i} ({stage.source})"
        maps[name] = model.transform(rows, stage=i), model.transform(test_rows, stage=i)

    print(f"\nfitted in {seconds:.0f} s; scores of the held-out rows, 1-NN against the training rows\n")
    print(" " * 18 + "".join(f"{score:>19s}" for score in SHOWN))
    for name, (train, test) in maps.items():
        result = evaluate(test_rows, test, test_labels, reference=(train, labels))
        print(f"{name:18s}" + "".join(f"{result[score]:19.3f}" for score in SHOWN))

    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/digits.png")
    path.parent.mkdir(exist_ok=True)
    held_out = [test for _, test in maps.values()]
    note = f"{len(test_rows)} held-out rows, embedded by a forward pass"
    title = f"{note}; 1-NN among these rows"  # the table above has it against the training rows
    figure = plot.stages(held_out, test_labels, X=test_rows, titles=list(maps), title=title)
    plot.save(figure, path, force=True)
    distorted = path.with_stem(f"{path.stem}-distortion")
    plot.save(plot.distortion(held_out[-1], result, note=note), distorted, force=True)
    print(f"\nthe maps are in {path}, and the distortion of the last one in {distorted}")


if __name__ == "__main__":
    main()
