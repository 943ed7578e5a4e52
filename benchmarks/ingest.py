"""Labels of new cells by a reference: ``dre.scanpy.tl.ingest`` beside ``sc.tl.ingest``, on cells that are labelled already.

python benchmarks/ingest.py --data FOLDER      write results/ingest.json; FOLDER holds scrna/

A quarter of the cells of each set is held out, in equal shares of the types, and labelled by the others. scanpy runs its usual
steps: pca, neighbors, umap, ingest. The methods take turns, after a warm-up that compiles what numba compiles. Then one type
after the other is left out of the reference, to see which of its cells are said not to be on the map. Only the PCA and the
neighbors decide that, so these references have a network that is hardly trained. sc.tl.ingest of scanpy 1.11.5 fails with
pynndescent 0.7: pip install --target FOLDER --no-deps 'pynndescent<0.7', with the folder in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
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
from dre.scanpy.tl import NOT_ON_MAP
from record import record

Array = np.ndarray[Any, Any]
Scores = dict[str, float]
Labelled = tuple[Any, Scores]  # the labels, and seconds of the reference and of ingest
LABEL, HELD_OUT, SEEDS = "cell_type", 0.25, 5
UNTRAINED = {"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(16, depth=1)"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--seeds", type=int, default=SEEDS)
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    sets = {"PBMC": read(PBMC, chosen.data), "CBMC": read(CBMC, chosen.data), "PBMC 68k": small_set()}
    warm_up(sets["PBMC 68k"])
    found = {name: {"cells": adata.n_obs, "types": adata.obs[LABEL].nunique(), **compare(adata, chosen.seeds)}
             for name, adata in sets.items()}  # fmt: skip
    for name, adata in sets.items():
        found[name]["left out"] = {str(kind): leave_out(adata, str(kind)) for kind in adata.obs[LABEL].cat.categories}
    versions = {"scanpy": version("scanpy"), "umap": version("umap-learn"), "pynndescent": pynndescent.__version__}
    record("ingest", found, seeds=chosen.seeds, libraries=versions)


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


def by_scanpy(reference: Any, query: Any, seed: int) -> Labelled:
    began = time.perf_counter()
    sc.pp.pca(reference, random_state=seed)
    sc.pp.neighbors(reference, random_state=seed)
    sc.tl.umap(reference, random_state=seed)
    mapped = time.perf_counter()
    sc.tl.ingest(query, reference, obs=LABEL)
    return query.obs[LABEL].to_numpy().astype(str), _seconds(began, mapped)


def by_dre(recipe: str, refuse: float) -> Callable[[Any, Any, int], Labelled]:
    def label(reference: Any, query: Any, seed: int) -> Labelled:
        began = time.perf_counter()
        dre.scanpy.tl.dre(reference, recipe=recipe, random_state=seed, device="cpu", verbose=False)
        mapped = time.perf_counter()
        dre.scanpy.tl.ingest(query, reference, obs=LABEL, refuse=refuse)
        return query.obs[LABEL].to_numpy().astype(str), _seconds(began, mapped)

    return label


METHODS: dict[str, Callable[[Any, Any, int], Labelled]] = {
    "sc.tl.ingest": by_scanpy,
    "dre.scanpy.tl.ingest": by_dre("auto", 0.0),
    "dre.scanpy.tl.ingest, recipe fast": by_dre("fast", 0.0),
    "dre.scanpy.tl.ingest, refuse 0.01": by_dre("fast", 0.01),
}


def _seconds(began: float, mapped: float) -> Scores:
    return {"reference_seconds": mapped - began, "ingest_seconds": time.perf_counter() - mapped}


def warm_up(adata: Any) -> None:
    for label in METHODS.values():
        label(*split(adata, 0)[:2], 0)


def compare(adata: Any, seeds: int) -> dict[str, Any]:
    """Scores and seconds of each method: means over the seeds, and each seed."""
    runs: dict[str, list[Scores]] = {name: [] for name in METHODS}
    for seed in range(seeds):
        for name, label in METHODS.items():
            reference, query, truth = split(adata, seed)
            found, seconds = label(reference, query, seed)
            runs[name].append({**score(truth, found), **seconds})
    return {"methods": {name: {**summary(each), "runs": each} for name, each in runs.items()}}


def score(truth: Array, found: Array) -> Scores:
    refused = found == NOT_ON_MAP
    return {
        "accuracy": float(accuracy_score(truth, found)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, found)),
        "macro_f1": float(f1_score(truth, found, labels=np.unique(truth), average="macro", zero_division=0)),
        "refused": float(refused.mean()),
        "accuracy_of_labelled": float((truth == found)[~refused].mean()),
    }


def summary(runs: list[Scores]) -> Scores:
    return {name: (median if "seconds" in name else mean)([run[name] for run in runs]) for name in runs[0]}


def leave_out(adata: Any, kind: str) -> dict[str, Any]:
    """The share of a type's cells that a reference without it refuses, that of the others, and the labels of the rest."""
    reference, query, truth = split(adata, 0, without=kind)
    dre.scanpy.tl.dre(reference, random_state=0, device="cpu", verbose=False, **UNTRAINED)
    dre.scanpy.tl.ingest(query, reference, obs=LABEL)
    labels, foreign = query.obs[LABEL].to_numpy().astype(str), truth == kind
    refused = labels == NOT_ON_MAP
    confidence = query.obs[f"{LABEL}_confidence"].to_numpy()
    instead, cells = np.unique(labels[foreign & ~refused], return_counts=True)
    return {
        "cells": int(foreign.sum()),
        "refused": float(refused[foreign].mean()),
        "refused_others": float(refused[~foreign].mean()),
        "instead": {str(instead[i]): int(cells[i]) for i in np.argsort(-cells)[:3]},
        "confidence": float(confidence[foreign & ~refused].mean()) if (foreign & ~refused).any() else None,
        "confidence_others": float(confidence[~foreign & ~refused].mean()),
    }


if __name__ == "__main__":
    main()
