"""Draw the curves of SPEED.md and PANEL.md from the JSON files in results.

python benchmarks/curves.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dre.plot.style import ACCENT, FRAME, TEXT, UNLABELED, panels, plot_axes, pyplot
from panel_tables import TITLES
from paper.load_spec import load_spec
from record import RESULTS
from result_text import machine

PICTURES = Path(__file__).parent.parent / "docs"
HIGHLIGHTED = ("dre", "paper")
MICRO = 1e6
LINES = {
    "dre": (ACCENT, "-"), "dre-fast": (ACCENT, "--"),
    "umap": ("#d1742b", "-"), "open-tsne": ("#4f9d5b", "-"), "pacmap": ("#8a5fb0", "-"),
}  # fmt: skip
MIN_SCORE = 0.8  # maps below it would squeeze the others together


def sizes() -> Any:
    """Cost of a row and quality of the map against the number of rows."""
    found = json.loads((RESULTS / "gpu-sizes.json").read_text())["results"]
    n = [each["n"] for each in found]
    figure, (cost, score) = panels(2, 5.4, 3.9)
    kinds = {
        "fit": ([each["fit_seconds"] for each in found], ACCENT, "-"),
        "of which neighbors": ([each["of_which_graphs"] for each in found], ACCENT, ":"),
        "transform": ([each["transform_seconds"] for each in found], TEXT, "-"),
    }
    for name, (seconds, color, line) in kinds.items():
        per_row = [MICRO * took / rows for took, rows in zip(seconds, n, strict=True)]
        cost.plot(n, per_row, line, color=color, marker="o", markersize=4)
        cost.annotate(name, (n[-1], per_row[-1]), (6, 0), textcoords="offset points", va="center", color=color, fontsize=9)
    cost.set_ylim(bottom=0)
    plot_axes(cost, "What a row costs", "rows fitted", "microseconds a row")
    score.plot(n, [each["1nn"] for each in found], color=ACCENT, marker="o", markersize=4)
    plot_axes(score, "MNIST's test set in the map", "deformed training digits fitted", "1-NN, held out")
    for axis in (cost, score):
        axis.set_xscale("log")
        axis.set_xticks(n, [_short(each) for each in n], fontsize=8, rotation=45)
        axis.minorticks_off()
    cost.set_xlim(right=n[-1] * 3.5)
    return figure


def per_second() -> Any:
    """Quality of maps of MNIST against the seconds of the fit, on two CPU cores and on a GPU."""
    titles = {name: run.title for name, run in load_spec(RESULTS.parent).methods.items()}
    figure, axes = panels(2, 5.4, 3.9)
    for axis, panel in zip(axes, ("cpu", "gpu"), strict=True):
        for path in sorted((RESULTS / "cells").glob(f"{panel}--mnist--*--0.json")):
            cell = json.loads(path.read_text())
            name, score = cell["job"]["run"], cell["stages"][-1].get("scores", {}).get("nearest_neighbor", 0.0)
            if cell["in_sample"] or score < MIN_SCORE:
                continue
            point = (cell["fit_seconds"], score)
            axis.scatter(*point, color=ACCENT if name in HIGHLIGHTED else UNLABELED, s=45, zorder=3)
            text = titles.get(name, name)
            axis.annotate(text, point, (0, 8), textcoords="offset points", ha="center", fontsize=8, color=TEXT)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.margins(0.25, 0.15)
        plot_axes(axis, f"MNIST, {machine(cell)}", "seconds of the fit", "1-NN, held out")
    return figure


def panel_curve(path: Path = RESULTS / "panel.json") -> Any:
    """Seconds of a fit against rows, on log axes; None if they were not measured."""
    result = json.loads(path.read_text())
    found = result.get("curve", {})
    if not found:
        return None
    figure, (axis,) = panels(1, 7.0, 4.6)
    ends: dict[str, tuple[float, float, str]] = {}
    for method, title in TITLES.items():
        seconds = {int(n): took for n, took in found.get(method, {}).items() if not isinstance(took, dict)}
        if not seconds:
            continue
        n = sorted(seconds)
        color, line = LINES[method]
        axis.plot(n, [seconds[each] for each in n], line, color=color, marker="o", markersize=4, linewidth=1.8)
        ends[title] = (n[-1], seconds[n[-1]], color)
    axis.set(xscale="log", yscale="log")
    axis.margins(y=0.1)
    counts = sorted({int(n) for seconds in found.values() for n in seconds})
    axis.set_xticks(counts, [f"{each:,}" for each in counts])
    axis.yaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(pyplot().NullLocator())
    axis.grid(axis="y", color=FRAME, linewidth=0.6)
    plot_axes(axis, f"50 principal components of MNIST, {machine(result)}", "rows fitted", "seconds of a warm fit")
    axis.set_xlim(right=counts[-1] * (counts[-1] / counts[0]) ** 0.22)
    _name_ends(axis, ends)
    return figure


def _name_ends(axis: Any, ends: dict[str, tuple[float, float, str]]) -> None:
    """Write the names of lines at their ends, apart from each other."""
    low, high = (math.log(value) for value in axis.get_ylim())
    left, right = axis.get_xlim()
    gap, below = 0.055 * (high - low), -math.inf
    for title, (x, y, color) in sorted(ends.items(), key=lambda item: item[1][1]):
        height = max(math.log(y), below + gap)
        below = height
        at, to = (x, y), (x * (right / left) ** 0.012, math.exp(height))
        axis.annotate(title, at, to, va="center", color=color, fontsize=9, annotation_clip=False)


def _short(n: int) -> str:
    return f"{n // 1000}k" if n < 1_000_000 else f"{n / 1e6:g}M"


def main() -> None:
    for name, drawn in (("speed-sizes", sizes()), ("speed-maps", per_second()), ("panel-curve", panel_curve())):
        if drawn is not None:
            drawn.savefig(PICTURES / f"{name}.png", dpi=130)


if __name__ == "__main__":
    main()
