"""Tables of NOTES.md on stages that begin with coordinates, from results/coordinates.json."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from paper.report.formatting import number
from result_text import load, table

SOURCES = ("h1", "x+h1", "h2")
NOISES = ("0.25", "1.0")
RECURSION_SCORES = ("neighborhood_hit", "trustworthiness", "shepard_goodness")
GLOBAL_SCORES = {
    "Shepard goodness": "shepard_goodness",
    "neighborhood hit": "neighborhood_hit",
    "trustworthiness": "trustworthiness",
}
STARTS = {
    "free350": "free coordinates, 350 steps",
    "pca": "principal components",
    "pca n1": "principal components, noise 1",
    "pca 200": "principal components, noise 1, half of the steps",
    "free100": "free coordinates, 100 steps, noise 1",
}
LARGE = {
    "auto (batches)": "inside each batch, the default before",
    "coordinates 1024 x2": "free coordinates, 1,024 wide, a recursion",
    "coordinates 2048 x2": "free coordinates, 2,048 wide, a recursion",
    "auto again": "free coordinates, 1,024 wide, two recursions",
    "coordinates": "free coordinates, 256 wide, on a grid",
}


def _settings() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load("coordinates")["results"]["settings"]
    return found


def _arrows(run: dict[str, Any], score: str) -> str:
    return " → ".join(number(stage[score]) for stage in run["stages"])


def sources() -> str:
    """Hit and trustworthiness over three recursions on a GPU, by their source."""
    runs = {(run["data"], run["setting"]): run for run in _settings()}
    data = list(dict.fromkeys(name for name, setting in runs if setting.startswith("rec ")))
    rows = []
    for name in data:
        for source in SOURCES:
            run = runs[name, f"rec {source} x3"]
            rows.append([f"{name}, {run['rows']:,} rows", f"`{source}`", _arrows(run, "hit"), _arrows(run, "trustworthiness")])
    return table(["data", "source", "neighborhood hit", "trustworthiness"], rows)


def noises() -> str:
    """Hit and trustworthiness after one recursion on a GPU, by the noise."""
    runs = {(run["data"], run["setting"]): run for run in _settings()}
    rows = []
    for name in dict.fromkeys(name for name, setting in runs if setting.startswith("noise ")):
        default = runs[name, "rec h1 x3"]["stages"][1]
        stages = [runs[name, f"noise {noise}"]["stages"][1] for noise in NOISES]
        cells = [f"{number(stage['hit'])} / {number(stage['trustworthiness'])}" for stage in (*stages, default)]
        rows.append([name, *cells])
    return table(["hit / trustworthiness", *(f"noise {noise}" for noise in NOISES), "0.75 below 4,000 rows, else 0.5"], rows)


def starts() -> str:
    """Where few rows start, three splits on a CPU."""
    runs = {(run["data"], run["setting"].removeprefix("start: ")): run for run in _settings() if "splits" in run}
    rows = []
    for name in dict.fromkeys(name for name, _ in runs):
        for setting, title in STARTS.items():
            run = runs[name, setting]
            scores = [number(run["stages"][0][score]) for score in ("1nn", "hit", "trustworthiness", "shepard")]
            rows.append([name, title, " / ".join(scores), number(run["procrustes"], 3)])
    return table(["data", "start", "1-NN / hit / trustworthiness / Shepard", "two seeds, Procrustes"], rows)


def recursions() -> str:
    """What each recursion changes on a CPU by the tails of its loss, and the losses that optional stages are judged by."""
    rows = []
    for run in load("recursions")["results"]:
        for i, (before, now) in enumerate(run["losses"], 1):
            changes = [f"{run[score][i] - run[score][i - 1]:+.3f}" for score in RECURSION_SCORES]
            rows.append(
                [f"{run['data']}, {run['rows']:,} rows", f"{i}", f"{run['alpha']:g}", f"{now / before - 1:+.0%}", *changes]
            )
    return table(["data", "recursion", "α", "loss of the map", "neighborhood hit", "trustworthiness", "Shepard"], rows)


def global_structure() -> str:
    """Scores by the weight of the distances to landmarks, means over the splits."""
    runs: dict[tuple[str, int], dict[float, list[dict[str, Any]]]] = {}
    for run in load("global-structure")["results"]:
        runs.setdefault((run["data"], run["rows"]), {}).setdefault(run["weight"], []).append(run)
    weights = sorted({weight for found in runs.values() for weight in found})
    rows = []
    for (name, count), found in runs.items():
        for title, score in GLOBAL_SCORES.items():
            cells = [number(mean(run[score] for run in found[weight])) for weight in weights]
            rows.append([f"{name}, {count:,} rows", title, *cells])
    return table(["data", "score", *(f"weight {weight:g}" for weight in weights)], rows)


def large() -> str:
    """Images and a million rows on a GPU."""
    rows = []
    for run in _settings():
        before = run["setting"] == "auto again" and run["file"] != "gpu3"  # of a recipe that is no longer the default
        if run.get("rows", 0) >= 60_000 and run["setting"] in LARGE and not before:
            last = run["stages"][-1]
            scores = " / ".join(number(last[score]) for score in ("1nn", "hit", "trustworthiness", "shepard"))
            rows.append([run["data"], LARGE[run["setting"]], scores, f"{run['fit_seconds']:.1f}", f"{run['peak_gib']:.1f}"])
    return table(["data", "setting", "1-NN / hit / trustworthiness / Shepard", "fit, s", "peak, GiB"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "coordinates-sources": sources,
    "coordinates-noises": noises,
    "coordinates-starts": starts,
    "coordinates-recursions": recursions,
    "coordinates-large": large,
    "global-structure": global_structure,
}
