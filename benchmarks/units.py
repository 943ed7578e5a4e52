"""Should mixed units be standardized? Maps of tables as they are and standardized, and the columns that outweigh all others.

python benchmarks/units.py --data FOLDER      write results/units.json; FOLDER holds tables/*.npz
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE
from dre.data.units import dominant_columns
from dre.metrics import evaluate
from panel_data import TABLES, stratified
from record import record

Array = np.ndarray[Any, Any]
SCIKIT_LEARN = ("iris", "wine", "breast_cancer", "digits")
MOST_ROWS = 5_000
SPLITS = 3
SCORES = ("nearest_neighbor", "neighborhood_hit")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    folder = options.parse_args().data
    record("units", {name: measure(*load(name, folder)) for name in (*SCIKIT_LEARN, *TABLES)}, seed=0, recipe="fast")


def load(name: str, folder: Path) -> tuple[Array, Array]:
    """Rows and labels, in the units of the table."""
    if name in SCIKIT_LEARN:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return found.data, found.target
    with np.load(folder / "tables" / f"{name}.npz") as file:
        rows, labels = file["X"].astype(np.float64), file["y"]
    some = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
    return rows[some], labels[some]


def measure(rows: Array, labels: Array) -> dict[str, Any]:
    """Held-out scores of both maps, means of three splits."""
    dominant = dominant_columns(rows.var(0))
    found: dict[str, Any] = {
        "columns": rows.shape[1],
        "dominant": None if dominant is None else {"columns": len(dominant.columns), "share": dominant.share},
    }
    for standardize in (False, True):
        scores = []
        for split in range(SPLITS):
            part = stratified(rows, labels, split)
            model = DRE("fast", standardize=standardize, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(part.rows)
            scores.append(evaluate(part.test_rows, model.transform(part.test_rows), part.test_labels))
        key = "standardized" if standardize else "as it is"
        found[key] = {name: float(np.mean([each[name] for each in scores])) for name in SCORES}
    return found


if __name__ == "__main__":
    main()
