"""The table of topics by DRE and by UMAP, from results/topics.json."""

from __future__ import annotations

from statistics import mean
from typing import Any

from paper.report.formatting import number
from result_text import load, machine, table

TITLES = {"umap": "UMAP, BERTopic's default", "dre": "DRE"}


def topics() -> str:
    """Means over the seeds."""
    results = load("topics")
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in results["results"]:
        runs.setdefault(run["method"], []).append(run)
    rows = []
    for method, found in runs.items():
        scores = [number(mean(run[key] for run in found)) for key in ("coherence", "diversity", "outliers")]
        count = f"{mean(run['topics'] for run in found):.0f}"
        seconds = [f"{mean(run['seconds'][key] for run in found):.1f}" for key in ("reduce", "embed")]
        rows.append([TITLES[method], count, *scores, *seconds])
    seeds = max(map(len, runs.values()))
    head = ["", "topics", "coherence", "diversity", "outliers", "fit, s", f"{results['held_out']:,} new documents, s"]
    about = f"{results['reviews']:,} reviews, {'one seed' if seeds == 1 else f'means of {seeds} seeds'}"
    return table(head, rows) + f"\n`{results['command']}`, {about}, on {machine(results)}.\n"


TABLES = {"topics": topics}
