"""Table of NOTES.md on readings of the paper, from results/readings.json."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from paper.report.formatting import number
from record import RESULTS
from result_text import load, machine, table

DATA = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}
COLUMNS = ("neighborhood_hit", "trustworthiness", "continuity", "one_minus_stress", "shepard_goodness")
MAPS = ("deep t-SNE", "DRE t-SNE", "DRE")
PROTOCOLS = {"test": "", **{name: f", scored on {name}" for name in ("train sample", "mixed sample", "train", "all")}}
PUBLISHED = "as published"


def _cell(maps: list[dict[str, float] | None], digits: int = 3) -> str:
    """The neighborhood hit of the three maps, then the other columns of the last one."""
    hits = " → ".join("–" if scores is None else number(scores[COLUMNS[0]], digits) for scores in maps)
    last = maps[-1]
    return hits if last is None else " / ".join([hits, *(number(last[column], digits) for column in COLUMNS[1:])])


def _scores(runs: list[dict[str, Any]], protocol: str, name: str) -> dict[str, float] | None:
    """Means over the seeds of one map."""
    found = [run["stages"][run["maps"][name]]["scores"].get(protocol) for run in runs if name in run["maps"]]
    if not found or None in found:
        return None
    return {column: mean(scores[column] for scores in found) for column in COLUMNS}


def readings() -> str:
    """All readings on the test rows, the one as published by every protocol, and the printed values; the closest first."""
    if not (RESULTS / "readings.json").exists():
        return ""
    result = load("readings")
    runs = [run for run in result["results"]["runs"] if "failed" not in run]
    rows = [["printed in the paper", *(_cell([result["printed"][data][name] for name in MAPS], 2) for data in DATA), "", ""]]
    for found in result["results"]["distances"]:
        if found["protocol"] != "test" and found["reading"] != PUBLISHED:
            continue
        cells = []
        for data in DATA:
            of_data = [run for run in runs if (run["reading"], run["data"]) == (found["reading"], data)]
            cells.append(_cell([_scores(of_data, found["protocol"], name) for name in MAPS]))
        both = [found["distance"], found["distance_of_maps"]]
        rows.append([found["reading"] + PROTOCOLS[found["protocol"]], *cells, *("–" if d is None else number(d) for d in both)])
    head = ["reading", *DATA.values(), "distance, DRE", "distance, all three maps"]
    seeds = 1 + max(run["seed"] for run in runs)
    note = f"`{result['command'].split(' --')[0]} --data FOLDER`, {machine(result)}, {seeds} seed{'s' if seeds > 1 else ''}"
    return table(head, rows) + f"\n{note}.\n"


TABLES: dict[str, Callable[[], str]] = {"readings": readings}
