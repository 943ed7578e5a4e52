"""scikit-learn's digits on a CPU: 75/25 stratified splits, held-out 1-NN after every stage, with and without recursion.

python benchmarks/digits.py --splits 3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dre import DRE
from dre.metrics import nearest_neighbor
from record import record

Array = np.ndarray[Any, Any]
Maps = list[tuple[Array, Array]]  # of the training and the test rows, after every stage
Method = Callable[[Array, Array, int], tuple[float, Maps]]


def dre(options: dict[str, Any]) -> Method:
    def run(rows: Array, test_rows: Array, seed: int) -> tuple[float, Maps]:
        model = DRE(**options, device="cpu", random_state=seed)
        seconds = timed(lambda: model.fit(rows))
        stages = range(len(model.stages_))
        return seconds, [(model.transform(rows, stage=i), model.transform(test_rows, stage=i)) for i in stages]

    return run


def umap(rows: Array, test_rows: Array, seed: int) -> tuple[float, Maps]:
    from umap import UMAP

    UMAP(random_state=0, n_jobs=1, n_epochs=1).fit(rows[:100])  # compile first: that is not timed
    model = UMAP(random_state=seed, n_jobs=1)
    seconds = timed(lambda: model.fit(rows))
    return seconds, [(model.embedding_, model.transform(test_rows))]


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


METHODS: dict[str, Method] = {
    "DRE()": dre({}),
    "DRE(recursions=0)": dre({"recursions": 0}),
    'DRE("fast")': dre({"recipe": "fast"}),
    "umap-learn": umap,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    splits = parser.parse_args().splits
    X, labels = load_digits(return_X_y=True)
    results = []
    for name, method in METHODS.items():
        scores, seconds = [], []
        for seed in range(splits):
            rows, test_rows, known, wanted = train_test_split(X, labels, test_size=0.25, stratify=labels, random_state=seed)
            took, maps = method(rows, test_rows, seed)
            seconds.append(took)
            scores.append([nearest_neighbor(test, wanted, reference=(train, known)) for train, test in maps])
        mean = np.mean(scores, axis=0).round(4).tolist()
        results.append({"name": name, "mean": mean, "splits": scores, "seconds": float(np.mean(seconds)), "each": seconds})
        print(name, mean, f"{np.mean(seconds):.1f} s", flush=True)
    record("digits", results, protocol="75/25 stratified, random_state = split", splits=splits)


if __name__ == "__main__":
    main()
