"""The tables of maps in 5, 10 and 50 dimensions, from results/components.json."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from paper.report.formatting import number
from result_text import load, machine, table

SCORES = {
    "1nn": "1-NN accuracy",
    "hit": "neighborhood hit",
    "trustworthiness": "trustworthiness",
    "recall": "recall of neighbors",
}

Runs = list[dict[str, Any]]


def components() -> str:
    """Scores of held-out rows, DRE's beside UMAP's, and the ratio of the seconds of their fits."""
    results = load("components")
    pairs: dict[tuple[str, int], dict[str, Runs]] = {}
    for run in results["results"]:
        pairs.setdefault((run["data"], run["n_components"]), {}).setdefault(run["method"], []).append(run)
    rows = []
    for (name, n_components), runs in pairs.items():
        scores = [" / ".join(number(_mean(runs[method], score)) for method in ("dre", "umap")) for score in SCORES]
        ratio = _mean(runs["dre"], "fit_seconds") / _mean(runs["umap"], "fit_seconds")
        rows.append([name, f"{n_components}", *scores, f"{ratio:.1f} ×"])
    splits = 1 + max(run["split"] for run in results["results"])
    head = ["data", "dimensions", *(f"{title}: DRE / UMAP" for title in SCORES.values()), "fit, of UMAP's"]
    about = f"held-out rows, {'one split' if splits == 1 else f'means of {splits} splits'}, on {machine(results)}"
    return table(head, rows) + f"\n`{results['command']}`, {about}. UMAP has `min_dist=0`, as for clusterings.\n"


def _mean(runs: Runs, key: str) -> float:
    return float(mean(run[key] for run in runs))


TABLES: dict[str, Callable[[], str]] = {"components": components}
