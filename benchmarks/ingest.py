"""Labels of new cells by a reference: ``dre.scanpy.tl.ingest`` beside ``sc.tl.ingest``, on cells that are labelled already.

python benchmarks/ingest.py --data FOLDER                  write results/ingest.json; FOLDER holds scrna/
python benchmarks/ingest.py --data FOLDER --only times     renew one of labels, times, foreign

A quarter of the cells of each set is held out, in equal shares of the types, and labelled by the others. scanpy runs its usual
steps: pca, neighbors, umap, ingest. Only PCA and neighbors decide on labels, so the network is hardly trained where labels
alone are looked at. For foreign cells, one type after the other is left out of the reference. For times, the methods take turns
after a warm-up that compiles what numba compiles. sc.tl.ingest of scanpy 1.11.5 fails with pynndescent 0.7:
pip install --target FOLDER --no-deps 'pynndescent<0.7', with the folder in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pynndescent
import scanpy as sc
import scipy.sparse
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import train_test_split

import dre.scanpy
from dre.datasets.scrna import CBMC, PBMC, CellCounts
from dre.scanpy.labels import NOT_ON_MAP
from record import record, result_file

Array = np.ndarray[Any, Any]
Scores = dict[str, float]
LABEL, HELD_OUT, SPLITS = "cell_type", 0.25, 3
UNTRAINED: dict[str, Any] = {"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(16, depth=1)"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--only", choices=PARTS)
    options.add_argument("--splits", type=int, default=SPLITS)
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    sets = {"PBMC": read(PBMC, chosen.data), "CBMC": read(CBMC, chosen.data), "PBMC 68k": small_set()}
    found = json.loads(file.read_text())["results"] if (file := result_file("ingest")).exists() else {}
    versions = {"scanpy": version("scanpy"), "umap": version("umap-learn"), "pynndescent": pynndescent.__version__}
    for part in [chosen.only] if chosen.only else PARTS:
        found[part] = {name: PARTS[part](adata, chosen.splits) for name, adata in sets.items()}
        found["cells"] = {name: adata.n_obs for name, adata in sets.items()}
        record("ingest", found, libraries=versions)


def read(source: CellCounts, folder: Path) -> Any:
    """Cells as an AnnData, normalized and logged."""
    counts, labels = source.read(folder)
    adata = anndata.AnnData(scipy.sparse.csr_matrix(counts), obs=_obs([f"class {label}" for label in labels]))
    adata.var_names = [f"gene {i}" for i in range(adata.n_vars)]
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    return adata


def small_set() -> Any:
    """The cells that scanpy brings with it: 700 of PBMC 68k, with the logarithms of their genes."""
    bundled = sc.datasets.pbmc68k_reduced()
    adata = anndata.AnnData(scipy.sparse.csr_matrix(bundled.raw.X), obs=_obs(bundled.obs["bulk_labels"]))
    adata.var_names = bundled.raw.var_names
    adata.uns["log1p"] = {"base": None}
    return adata


def _obs(labels: Any) -> pd.DataFrame:
    names = np.asarray(labels, dtype=str).astype(object)
    return pd.DataFrame({LABEL: pd.Categorical(names)}, index=[f"cell {i}" for i in range(len(names))])


def split(adata: Any, seed: int, without: str | None = None) -> tuple[Any, Any, Array]:
    """A reference, new cells without labels, and what their labels are."""
    kept, held = train_test_split(np.arange(adata.n_obs), test_size=HELD_OUT, random_state=seed, stratify=adata.obs[LABEL])
    reference, query = adata[kept].copy(), adata[held].copy()
    if without is not None:
        reference = reference[reference.obs[LABEL] != without].copy()
    truth = query.obs[LABEL].to_numpy().astype(str)
    query.obs = query.obs[[]]
    return reference, query, truth


def by_scanpy(reference: Any, seed: int) -> None:
    sc.pp.pca(reference, random_state=seed)
    sc.pp.neighbors(reference, random_state=seed)
    sc.tl.umap(reference, random_state=seed)


def by_dre(**options: Any) -> Callable[[Any, int], None]:
    def prepare(reference: Any, seed: int) -> None:
        dre.scanpy.tl.dre(reference, random_state=seed, device="cpu", verbose=False, **options)

    return prepare


TIMED = {"sc.tl.ingest": by_scanpy, "dre": by_dre(), "dre, recipe fast": by_dre(recipe="fast")}


def labels(adata: Any, splits: int) -> dict[str, Any]:
    """Means of the scores over the splits, and the number of these."""
    runs: dict[str, list[Scores]] = {"sc.tl.ingest": [], "dre, refuse=0": [], "dre": []}
    for seed in range(splits):
        reference, query, truth = split(adata, seed)
        theirs = reference.copy()
        by_scanpy(theirs, seed)
        by_dre(**UNTRAINED)(reference, seed)
        found = {
            "sc.tl.ingest": sc.tl.ingest(query, theirs, obs=LABEL, inplace=False),
            "dre, refuse=0": dre.scanpy.tl.ingest(query, reference, obs=LABEL, refuse=0, copy=True),
            "dre": dre.scanpy.tl.ingest(query, reference, obs=LABEL, copy=True),
        }
        for name, labelled in found.items():
            runs[name].append(score(truth, labelled.obs[LABEL].to_numpy().astype(str)))
    return {
        name: {key: mean([run[key] for run in each]) for key in each[0]} | {"splits": splits} for name, each in runs.items()
    }


def times(adata: Any, splits: int) -> dict[str, Any]:
    """Seconds of the reference and of ingest, by the clock and of the CPU: medians over the splits, after one that warms up."""
    runs: dict[str, list[Scores]] = {name: [] for name in TIMED}
    for seed in range(splits + 1):
        for name, prepare in TIMED.items():
            reference, query, _ = split(adata, seed)
            moments = [_now()]
            prepare(reference, seed)
            moments.append(_now())
            (sc if prepare is by_scanpy else dre.scanpy).tl.ingest(query, reference, obs=LABEL)
            moments.append(_now())
            spent = [{kind: after[kind] - before[kind] for kind in after} for before, after in pairwise(moments)]
            names = ("reference", "ingest")
            runs[name].append({f"{what} {kind}": each[kind] for what, each in zip(names, spent, strict=True) for kind in each})
    return {name: {key: median([run[key] for run in each[1:]]) for key in each[0]} for name, each in runs.items()}


def _now() -> Scores:
    return {"seconds": time.perf_counter(), "cpu": time.process_time()}


def score(truth: Array, found: Array) -> Scores:
    refused = found == NOT_ON_MAP
    return {
        "accuracy": float(accuracy_score(truth, found)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, found)),
        "macro_f1": float(f1_score(truth, found, labels=np.unique(truth), average="macro", zero_division=0)),
        "refused": float(refused.mean()),
        "accuracy_of_labelled": float((truth == found)[~refused].mean()),
    }


def foreign(adata: Any, splits: int) -> dict[str, Any]:
    """What becomes of each type, in one split."""
    return {str(kind): leave_out(adata, str(kind)) for kind in adata.obs[LABEL].cat.categories}


def leave_out(adata: Any, kind: str) -> dict[str, Any]:
    """The share of a type's cells that a reference without it refuses, that of the others, and the labels of the rest."""
    reference, query, truth = split(adata, 0, without=kind)
    dre.scanpy.tl.dre(reference, random_state=0, device="cpu", verbose=False, **UNTRAINED)
    dre.scanpy.tl.ingest(query, reference, obs=LABEL)
    found, is_foreign = query.obs[LABEL].to_numpy().astype(str), truth == kind
    refused = found == NOT_ON_MAP
    confidence = query.obs[f"{LABEL}_confidence"].to_numpy()
    instead, cells = np.unique(found[is_foreign & ~refused], return_counts=True)
    return {
        "cells": int(is_foreign.sum()),
        "refused": float(refused[is_foreign].mean()),
        "refused_others": float(refused[~is_foreign].mean()),
        "instead": {str(instead[i]): int(cells[i]) for i in np.argsort(-cells)[:3]},
        "confidence": float(confidence[is_foreign & ~refused].mean()) if (is_foreign & ~refused).any() else None,
        "confidence_others": float(confidence[~is_foreign & ~refused].mean()),
    }


PARTS: dict[str, Callable[[Any, int], dict[str, Any]]] = {"labels": labels, "foreign": foreign, "times": times}

if __name__ == "__main__":
    main()
