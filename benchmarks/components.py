"""Maps of 5, 10 and 50 dimensions by DRE and by UMAP: scores of held-out rows, and seconds.

python benchmarks/components.py --data FOLDER      write results/components.json; FOLDER holds the data of panel_data.py

UMAP has the settings that clusterings use, n_neighbors=15 and min_dist=0. The methods take turns on the same rows, in a process
where a first fit of few rows, which is not counted, has compiled what they compile.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE
from dre.metrics import nearest_neighbor, neighbor_recall, neighborhood_hit, trustworthiness
from panel_data import Split, load
from record import record

DATA = ("digits", "segment", "optdigits", "pendigits", "cbmc")
COMPONENTS = (5, 10, 50)
WARM_UP = 400  # rows
LARGE_WARM_UP = 4_500  # beyond 4,096 rows umap-learn searches neighbors in another way


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--splits", type=int, default=1)
    options.add_argument("--sets", nargs="+", default=list(DATA), metavar="NAME")
    chosen = options.parse_args()
    warm = np.random.default_rng(0).normal(size=(LARGE_WARM_UP, 8))
    for make in METHODS.values():
        for rows in (warm[:WARM_UP], warm):
            make(COMPONENTS[0], 0).fit(rows).transform(rows[:WARM_UP])
    results = [
        {"data": name, "split": split, "n_components": n_components, "method": method}
        | measure(method, n_components, split, rows)
        for name in chosen.sets
        for split in range(chosen.splits)
        for rows in [load(name, split, chosen.data)]
        for n_components in COMPONENTS
        for method in METHODS
    ]
    record("components", results)


def _umap(n_components: int, seed: int) -> Any:
    """UMAP without a seed, since it then uses all cores."""
    from umap import UMAP

    return UMAP(n_neighbors=15, min_dist=0.0, n_components=n_components)


def _dre(n_components: int, seed: int) -> Any:
    return DRE(n_components=n_components, random_state=seed, device="cpu", verbose=False)


METHODS = {"umap": _umap, "dre": _dre}


def measure(method: str, n_components: int, split: int, rows: Split) -> dict[str, Any]:
    """Scores of the held-out rows, and seconds of the fit and of their embedding."""
    model = METHODS[method](n_components, split)
    began = time.perf_counter()
    model.fit(rows.rows)
    fitted = time.perf_counter()
    Y = np.asarray(model.transform(rows.test_rows), dtype=np.float32)
    embedded = time.perf_counter()
    reference = (np.asarray(model.embedding_, dtype=np.float32), rows.labels)
    found = {
        "1nn": nearest_neighbor(Y, rows.test_labels, reference=reference),
        "hit": neighborhood_hit(Y, rows.test_labels),
        "trustworthiness": trustworthiness(rows.test_rows, Y),
        "recall": neighbor_recall(rows.test_rows, Y),
    }
    scores = {name: round(float(np.mean(value)), 4) for name, value in found.items()}
    print(method, n_components, scores, round(fitted - began, 1), flush=True)
    return scores | {"fit_seconds": round(fitted - began, 2), "embed_seconds": round(embedded - fitted, 3)}


if __name__ == "__main__":
    main()
