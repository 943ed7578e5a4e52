"""Tables of PANEL.md from results/panel.json and panel-gpu.json."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median
from typing import Any

from paper.report.formatting import number
from result_text import load, machine, table

TITLES = {"dre": "DRE()", "dre-fast": 'DRE("fast")', "umap": "UMAP", "open-tsne": "openTSNE", "pacmap": "PaCMAP"}
PEERS = ("umap", "open-tsne")
CLOSE = 0.01
CURVE_PICTURE = "../docs/panel-curve.png"  # drawn by curves.py
NOT_MEASURED = "Not measured yet.\n"
Cells = dict[str, dict[str, Any]]


def _results() -> dict[str, Cells]:
    found: dict[str, Cells] = load("panel")["results"]
    measured = {name: {method: cell for method, cell in cells.items() if "runs" in cell} for name, cells in found.items()}
    return {name: cells for name, cells in measured.items() if cells}


def _methods() -> list[str]:
    return [method for method in TITLES if any(method in cells for cells in _results().values())]


def _score(cell: dict[str, Any], score: str) -> float:
    return float(mean(run[score] for run in cell["runs"] if score in run))


def _about() -> str:
    result = load("panel")
    return f"`{result['command'].split(' --')[0]} --data FOLDER`, {machine(result)}"


def _of_score(score: str, digits: int = 3) -> str:
    """Mean of one score over the splits, for all methods; the best in bold."""
    rows = []
    for name, cells in _results().items():
        have = {method: _score(cell, score) for method, cell in cells.items() if score in cell["runs"][0]}
        if not have:
            continue
        best = max(have.values())
        texts = [
            "–" if method not in have else f"**{number(have[method], digits)}**" if have[method] == best
            else number(have[method], digits)
            for method in _methods()
        ]  # fmt: skip
        rows.append([f"{name}, {_size(cells)}", *texts])
    return table(["held-out rows of", *(TITLES[method] for method in _methods())], rows) + f"\n{_about()}.\n"


def _size(cells: Cells) -> str:
    some = next(iter(cells.values()))
    return f"{some['rows']:,} × {some['columns']:,}"


def seconds() -> str:
    """Warm fits, and whole processes from their start."""
    rows = []
    for name, cells in _results().items():
        warm = [_seconds(cells, method, "warm") for method in _methods()]
        whole = [_seconds(cells, method, "whole") for method in _methods()]
        rows.append([f"{name}, {_size(cells)}", *(f"{a} / {b}" for a, b in zip(warm, whole, strict=True))])
    head = ["seconds, warm / whole", *(TITLES[method] for method in _methods())]
    return table(head, rows) + f"\n{_about()}.{_failures()}\n"


def _failures() -> str:
    """Name the methods that cannot fit or embed some data, and their reasons."""
    found = [
        f"{TITLES[method]} on {name}: {cell['failed']}."
        for name, cells in load("panel")["results"].items()
        for method, cell in cells.items()
        if "failed" in cell
    ]
    return f" {' '.join(found)}" if found else ""


def _seconds(cells: Cells, method: str, when: str, digits: int = 1) -> str:
    if method not in cells:
        return "–"
    cell = cells[method]
    value = cell["whole_seconds"] if when == "whole" else mean(run["fit_seconds"] for run in cell["runs"])
    return f"{value:.{digits}f}"


def memory() -> str:
    """Peak memory, and the agreement of two seeds."""
    rows = [
        [f"{name}, {_size(cells)}",
         *("–" if m not in cells else f"{cells[m]['peak_mb']:,.0f} / {number(cells[m]['procrustes'], 3)}" for m in _methods())]
        for name, cells in _results().items()
    ]  # fmt: skip
    head = ["peak memory in MB / Procrustes distance", *(TITLES[method] for method in _methods())]
    return table(head, rows) + f"\n{_about()}.\n"


def summary() -> str:
    """On how many data sets the default is at or above both peers, and where it is furthest below."""
    rows = []
    for score, title in SCORES.items():
        gaps = _gaps(score)
        if not gaps:
            continue
        worst = min(gaps, key=lambda name: gaps[name])
        counts = [f"{sum(gap >= -short for gap in gaps.values())} of {len(gaps)}" for short in (0, CLOSE)]
        rows.append([title, *counts, f"{worst}, {gaps[worst]:+.3f}"])
    head = ["score of held-out rows", "DRE() at or above UMAP and openTSNE", f"no more than {number(CLOSE)} below the better"]
    return table([*head, "furthest below the better"], rows)


def _gaps(score: str) -> dict[str, float]:
    gaps = {}
    for name, cells in _results().items():
        if all(method in cells and score in cells[method]["runs"][0] for method in ("dre", *PEERS)):
            gaps[name] = round(_score(cells["dre"], score) - max(_score(cells[peer], score) for peer in PEERS), 3)
    return gaps


def curve() -> str:
    """Seconds of warm fits of more and more rows, and their figure."""
    result = load("panel")
    found: dict[str, dict[str, Any]] = result.get("curve", {})
    if not found:
        return NOT_MEASURED
    methods = [method for method in TITLES if method in found]
    counts = sorted({int(count) for seconds in found.values() for count in seconds})
    rows = [[f"{count:,}", *(_curve_cell(found[method].get(str(count))) for method in methods)] for count in counts]
    text = table(["rows", *(f"{TITLES[method]}, s" for method in methods)], rows)
    failed = [
        f"{TITLES[method]}, {int(count):,} rows: {value['failed']}."
        for method in methods
        for count, value in found[method].items()
        if isinstance(value, dict)
    ]
    about = " ".join([f"`python benchmarks/panel.py --data FOLDER --curve`, {machine(result)}.", *failed])
    return f"![Seconds of a fit against rows, on log axes]({CURVE_PICTURE})\n\n{text}\n{about}\n"


def _curve_cell(seconds: Any) -> str:
    return f"{seconds:.2f}" if isinstance(seconds, float | int) else "–"


def busy() -> str:
    """Seconds alone and beside busy processes, and how much more one method is slowed down than the other."""
    result = load("panel")
    found: dict[str, Cells] = result.get("busy", {})
    if not found:
        return NOT_MEASURED
    have = [method for method in TITLES if any(method in cells for cells in found.values())]
    rows = []
    for name, cells in found.items():
        ratio: Any = cells.get("slowdown_ratio")
        ours = [_busy_cell(cells.get(method, {})) for method in have]
        rows.append([name, *ours, "–" if ratio is None else f"{ratio:.2f}"])
    twice = any("twice_seconds" in cell for cells in found.values() for cell in cells.values() if isinstance(cell, dict))
    title = "seconds, quiet / busy; two at once" if twice else "seconds, quiet / busy"
    head = [title, *(TITLES[method] for method in have), "slowdown of DRE() / of UMAP"]
    return table(head, rows) + f"\n`python benchmarks/panel.py --data FOLDER --busy`, {machine(result)}.\n"


def _busy_cell(cell: dict[str, Any]) -> str:
    if "slowdown" not in cell:
        return "–"
    quiet, beside = median(cell["quiet_seconds"]), median(cell["busy_seconds"])
    text = f"{quiet:.1f} / {beside:.1f}, {cell['slowdown']:.2f} ×"
    return f"{text}; {median(cell['twice_seconds']):.1f}, {cell['twice_slowdown']:.2f} ×" if "twice_seconds" in cell else text


def gpu() -> str:
    """The default on a GPU: seconds of a warm fit, scores and the agreement of two seeds."""
    result = load("panel-gpu")
    order = list(_results())
    rows = []
    for name, cells in sorted(result["results"].items(), key=lambda item: order.index(item[0])):
        scores = [number(_score(cells["dre"], score)) for score in GPU_SCORES]
        rows.append(
            [f"{name}, {_size(cells)}", _seconds(cells, "dre", "warm", 2), *scores, number(cells["dre"]["procrustes"], 3)]
        )
    head = ["held-out rows of", "fit, warm, s", *(SCORES[score] for score in GPU_SCORES), "Procrustes distance"]
    return table(head, rows) + f"\n`python benchmarks/panel.py --data FOLDER --methods dre --device cuda`, {machine(result)}.\n"


GPU_SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "shepard_goodness")
SCORES = {
    "neighborhood_hit": "neighborhood hit",
    "nearest_neighbor": "1-NN accuracy",
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "shepard_goodness": "Shepard goodness",
    "centroid_correlation": "centroid correlation",
}


def _table_of(score: str) -> Callable[[], str]:
    return lambda: _of_score(score)


TABLES: dict[str, Callable[[], str]] = {
    "panel-summary": summary,
    "panel-seconds": seconds,
    "panel-memory": memory,
    "panel-curve": curve,
    "panel-busy": busy,
    "panel-gpu": gpu,
    **{f"panel-{score.replace('_', '-')}": _table_of(score) for score in SCORES},
}
