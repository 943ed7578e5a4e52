"""Fill the result tables of Markdown files from the JSON files in results, so that no number is typed by hand.

python benchmarks/readme.py            fill them
python benchmarks/readme.py --check    fail if a table differs from the results

A table stands between ``<!-- results: NAME -->`` and ``<!-- end of results -->``, in README.md, docs/*.md, or the
pages in this folder; NAME is a key of ``TABLES``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from backbone_tables import TABLES as BACKBONE
from components_tables import TABLES as COMPONENTS
from coordinates_tables import TABLES as COORDINATES
from ingest_tables import TABLES as INGEST
from messy_tables import TABLES as MESSY
from metric_tables import TABLES as METRIC
from panel_tables import TABLES as PANEL
from paper.load_spec import load_spec
from paper.report.formatting import number
from paper.report.reading import CellReader, TableCell, published
from paper.store import Store
from readings_tables import TABLES as READINGS
from record import RESULTS
from reliability_tables import TABLES as RELIABILITY
from result_text import load, machine, table
from scale_tables import TABLES as SCALE
from speed_tables import TABLES as SPEED
from topics_tables import TABLES as TOPICS

HERE = Path(__file__).parent
DATA = ("mnist", "fashion-mnist", "digits", "digits, flattened", "300 digits, flattened", "pbmc", "cbmc")  # of the rounds
BLOCK = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


def arrows(values: list[float]) -> str:
    """Format the scores after successive stages."""
    return " → ".join(map(number, values))


def stages() -> str:
    """Scores after every stage, on images; seconds of a fit that had the GPU to itself."""
    records = RESULTS / "cells"
    rows = []
    for data, title in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")):
        for run, recipe in (("paper", "paper"), ("dre", "auto")):
            found = [json.loads(path.read_text()) for path in sorted(records.glob(f"{data}--{run}--*.json"))]
            scores = [
                arrows([mean(each["stages"][i]["scores"][score] for each in found) for i in range(len(found[0]["stages"]))])
                for score in ("nearest_neighbor", "neighborhood_hit", "trustworthiness")
            ]
            alone = records / f"gpu--{data}--{run}--0.json"
            seconds = f"{json.loads(alone.read_text())['fit_seconds']:.1f}" if alone.exists() else "–"
            rows.append([f"{title}, `{recipe}`", *scores, seconds])
    head = ["recipe", "1-NN", "neighborhood hit, paper's protocol", "trustworthiness", f"fit, s ({machine(found[0])})"]
    return table(head, rows) + f"\n`python benchmarks/bench.py table-1 table-4`, mean of {len(found)} seeds; seconds of one.\n"


def tuning(round_number: int) -> str:
    """One round of settings, means over the seeds."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run in load("tuning")["results"]:
        if run["round"] == round_number:
            runs.setdefault(run["what"], {}).setdefault(run["data"], []).append(run)
    data = [name for name in DATA if any(name in found for found in runs.values())]
    return table(
        ["setting", *data], [[what, *(_tuning_cell(found.get(name, [])) for name in data)] for what, found in runs.items()]
    )


def _tuning_cell(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return ""
    scores = [mean(run["stages"][-1][score] for run in runs) for score in ("1nn", "hit", "trustworthiness")]
    if "fit_seconds" in runs[0]:
        return f"{' / '.join(map(number, scores))}, {mean(run['fit_seconds'] for run in runs):.0f} s"
    return f"{' / '.join(map(number, scores))} ({number(mean(run['fitted_rows_1nn'] for run in runs))})"


def digits() -> str:
    result = load("digits")
    rows = [[found["name"], arrows(found["mean"]), f"{found['seconds']:.0f}"] for found in result["results"]]
    head = ["method", "held-out 1-NN", f"fit, s ({machine(result)})"]
    return table(head, rows) + f"\n`{result['command']}`, mean of {result['splits']} stratified 75/25 splits.\n"


def neighbors() -> str:
    result = load("neighbors")
    rows = [
        [f"{found['n']:,} × {found['d']}", f"{found['exact_seconds']:.1f}", f"{found['approximate_seconds']:.1f}",
         number(found["recall"]), found["chosen"]]
        for found in result["results"]
    ]  # fmt: skip
    head = ["rows", "exact, s", "approximate, s", "recall of its 90 neighbors", "chosen"]
    return table(head, rows) + f"\n`{result['command']}`, {machine(result)}.\n"


def metrics_speed() -> str:
    result = load("metrics-speed")
    found = {(each["work"], each["n"]): each for each in result["results"]}
    rows = [
        _versus(n, each, found["trustworthiness, scikit-learn", n])
        for (work, n), each in found.items()
        if work == "trustworthiness, dre"
    ]
    head = ["rows × 784", "trustworthiness, s", "scikit-learn, s", "faster", "peak memory, MB", "scikit-learn, MB"]
    ((_, largest), both) = next(item for item in found.items() if "continuity" in item[0][0])
    return table(head, rows) + (
        f"\n`{result['command']}`, {machine(result)}; memory is in addition to data and libraries. Rows, map and result "
        f"are float64; dre computes them from float32 products. At {largest:,} rows trustworthiness and continuity take "
        f"{both['seconds']:.0f} s and {both['peak_mb']:,.0f} MB.\n"
    )


def metrics_zadu() -> str:
    result = load("metrics-zadu")
    found = {(each["work"], each["n"]): each for each in result["results"]}
    rows = [_versus(n, found["all, dre", n], each) for (work, n), each in found.items() if work == "all, ZADU"]
    head = ["rows × 784", "`evaluate`, s", "ZADU, s", "faster", "peak memory, MB", "ZADU, MB"]
    largest = max(n for _, n in found)
    dre = found["all, dre", largest]
    return table(head, rows) + (
        f"\n`{result['command']}`, {machine(result)}. `evaluate` has 8 scores; ZADU has 5 of them. "
        f"At {largest:,} rows `evaluate` takes {dre['seconds']:.0f} s and {dre['peak_mb']:,.0f} MB.\n"
    )


def _versus(n: int, dre: dict[str, Any], other: dict[str, Any]) -> list[str]:
    seconds, memory = f"{dre['seconds']:.2f}", f"{dre['peak_mb']:,.0f}"
    if "failed" in other:
        return [f"{n:,}", seconds, "ends early", "", memory, "out of memory"]
    faster = f"{other['seconds'] / dre['seconds']:.1f} ×"
    return [f"{n:,}", seconds, f"{other['seconds']:.2f}", faster, memory, f"{other['peak_mb']:,.0f}"]


def metrics_gpu() -> str:
    result = load("metrics-gpu")
    parts = [f"{median(found['seconds']):.1f} s in {found['dtype']}" for found in result["results"]]
    largest = max(found["peak_gib"] for found in result["results"])
    what = f"`evaluate` takes {' and '.join(parts)} at 60,000 × 784, and {largest:.1f} GiB"
    return f"On a GPU ({machine(result)}) {what} (`{result['command']}`).\n"


def metrics_paper() -> str:
    result = load("metrics-paper")
    names = ("neighborhood_hit", "trustworthiness", "continuity", "normalized_stress", "shepard_goodness")
    rows = [
        [protocol, *(number(1 - found[name] if name == "normalized_stress" else found[name]) for name in names)]
        for protocol, found in result["results"].items()
    ]
    printed = ["printed in the paper", *(number(value, 2) for value in result["printed"].values())]
    head = ["protocol", "neighborhood hit", "trustworthiness", "continuity", "1 - stress", "Shepard goodness"]
    return table(head, [*rows, printed]) + f"\n`{result['command']}`\n"


def infimnist() -> str:
    """The slower of reading a range and reading single rows, on all cores and on a GPU."""
    parts = []
    for name in ("infimnist", "infimnist-gpu"):
        result = load(name)
        rate = min(result["results"][-1][way] for way in ("read", "take"))
        parts.append(f"{round(rate, -4):,} on {machine(result)}")
    return f"Images a second: {', '.join(parts)} (`{result['command']}`).\n"


def paper() -> str:
    """Neighborhood hit and 1-NN accuracy of DRE, other methods and the published value, as in Table 1 of the report."""
    reader = CellReader(load_spec(RESULTS.parent), Store(RESULTS / "cells", RESULTS))
    first = next(table for table in reader.spec.tables if table.name == "table-1")
    names = ("dre", "paper", "umap", "open-tsne", "parametric-tsne", "dl-umap")
    rows = []
    for data in ("mnist", "fashion-mnist", "imdb", "pbmc", "cbmc"):
        for score, title in (("neighborhood_hit", "hit"), ("nearest_neighbor", "1-NN")):
            here = [reader.read(first, TableCell(data, name, score)).mean for name in names]
            printed = None if data in first.not_differenced else published(first, TableCell(data, "paper", score))
            values = [*((value, 3) for value in here), (printed, 2)]
            texts = ["–" if value is None else number(value, digits) for value, digits in values]
            rows.append([f"{reader.spec.data[data].title}, {title}", *texts])
    titles = [reader.spec.methods[name].title for name in names]
    head = ["held-out", *titles, "DRE t-SNE + UMAP, published"]
    return (
        table(head, rows)
        + "\n`python benchmarks/bench.py`, the means of Table 1 of its report; the hit is that of the paper.\n"
    )


EXPLORER = {  # what the table tells of a page, and the digits after the point
    "megabytes": ("MB", 1),
    "webgl2_first_paint_seconds": ("first paint, s: WebGL2", 1),
    "canvas_first_paint_seconds": ("canvas", 1),
    "webgl2_fps": ("frames a second of a drag: WebGL2", 0),
    "canvas_fps": ("canvas", 0),
    "webgl2_points_while_dragging": ("points in them: WebGL2", 0),
    "canvas_points_while_dragging": ("canvas", 0),
}


def explorer() -> str:
    """Size and speed of explorer pages."""
    result = load("explorer")
    told = {key: about for key, about in EXPLORER.items() if any(key in found for found in result["results"].values())}
    rows = []
    for name, found in result["results"].items():
        numbers = [f"{found[key]:,.{digits}f}" if key in found else "" for key, (_, digits) in told.items()]
        rows.append([f"{found['points']:,} points {name}", *numbers])
    note = f"`{result['command']}`, Chromium in {result.get('graphics', 'software rendering')}, {machine(result)}"
    return table(["page", *(title for title, _ in told.values())], rows) + f"\n{note}.\n"


def page_model() -> str:
    """What a model adds to a page, and how rows are placed there."""
    result = load("page-model")
    rows = [
        [
            f"`{found['encoder']}`, rows of {' × '.join(map(str, found['shape']))}",
            f"{found['weights']:,}",
            f"{found['model_bytes'] / 1e6:.2f}",
            f"{found['deviation']:.0e}",
            f"{found['rows_per_second']:,.0f}",
        ]
        for found in result["results"]
    ]
    head = ["encoder", "numbers in it", "MB in the page", "largest deviation from `transform`", "rows a second"]
    note = f"`{result['command']}`, Chromium, {machine(result)}; rows come from a CSV file."
    runtime = result["onnxruntime_web"]
    size, scripts = sum(runtime["bytes"].values()) / 1e6, {name: size / 1e3 for name, size in result["script_bytes"].items()}
    without = result["results"][0]["page_bytes"] / 1e6
    return table(head, rows) + (
        f"\n{note} A page without the model has {without:.2f} MB here. The files of onnxruntime-web {runtime['version']} for "
        f"a CPU have {size:.1f} MB, in text {size * 4 / 3:.1f} MB; the script that computes steps has "
        f"{scripts['program']:.0f} kB, and all that place new rows {scripts['all']:.0f} kB.\n"
    )


TABLES: dict[str, Callable[[], str]] = {
    "explorer": explorer,
    "page-model": page_model,
    "stages": stages,
    **{f"tuning-{i}": partial(tuning, i) for i in range(1, 9)},
    "infimnist": infimnist,
    "paper": paper,
    "digits": digits,
    "neighbors": neighbors,
    "metrics-speed": metrics_speed,
    "metrics-zadu": metrics_zadu,
    "metrics-gpu": metrics_gpu,
    "metrics-paper": metrics_paper,
    **INGEST,
    **MESSY,
    **BACKBONE,
    **COMPONENTS,
    **METRIC,
    **SPEED,
    **TOPICS,
    **PANEL,
    **READINGS,
    **COORDINATES,
    **RELIABILITY,
    **SCALE,
}


def pages(root: Path = HERE.parent) -> list[Path]:
    """Return the Markdown files that may have result tables."""
    own = [HERE / name for name in ("NOTES.md", "PANEL.md", "SCALE.md", "SPEED.md")]
    return [root / "README.md", *sorted((root / "docs").glob("*.md")), *own]


def fill_tables(text: str) -> str:
    """Return a page with its result tables filled in."""

    def table_of(match: re.Match[str]) -> str:
        if match["name"] not in TABLES:
            raise SystemExit(f"unknown results {match['name']!r}; known: {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[match['name']]()}{match[3]}"

    return BLOCK.sub(table_of, text)


def main() -> None:
    """Fill or check all pages."""
    outdated = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        wanted = fill_tables(text)
        if wanted != text:
            outdated.append(page)
            if "--check" not in sys.argv:
                page.write_text(wanted, encoding="utf-8")
    if outdated and "--check" in sys.argv:
        sys.exit(f"{', '.join(page.name for page in outdated)}: tables differ from benchmarks/results; run `make readme`")


if __name__ == "__main__":
    main()
