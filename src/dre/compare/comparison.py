"""What came of a comparison: the maps of all methods, with their scores, as a table and as a picture."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.compare.measure import Result
from dre.datasets import Dataset
from dre.metrics.inputs import unique_labels
from dre.plot.scatter import MAX_LABELS

Array = np.ndarray[Any, Any]
SCORES = {  # in the order of the table; of all of them 1 is the best
    "nearest_neighbor": "1-NN accuracy",
    "neighborhood_hit": "neighbourhood hit",
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "shepard_goodness": "Shepard goodness",
    "silhouette": "silhouette",
    "centroid_correlation": "centroid correlation",
}
SECONDS = {"fit_seconds": "fit, seconds", "transform_seconds": "embed, seconds"}
COMPILED = ("umap", "dl-umap")  # by numba, in the first fit of a process
WIDE = 12  # characters of a name in the head of the table
IN_A_LINE = 4  # panels of the picture
PANEL = (4.2, 4.7)  # inches
WRITTEN = 60  # characters of the names of all classes, up to which they are written into every map


@dataclass(frozen=True)
class Shown:
    """A map of the held-out rows: that of a method, or what it was before the method's first recursion."""

    name: str
    record: dict[str, Any]
    places: Array
    scores: dict[str, float]
    seconds: dict[str, float | None]  # as SECONDS has them


@dataclass(frozen=True)
class Compared:
    """Printed, a table. ``results`` has the record and the maps of each method, ``failed`` why others have none."""

    dataset: Dataset
    results: dict[str, Result]
    failed: dict[str, str]

    def shown(self) -> list[Shown]:
        """One map per method, and that before the recursion where there was one: it comes from the same fit."""
        return [each for name, result in self.results.items() for each in _maps_of(name, result)]

    def rows(self) -> list[dict[str, Any]]:
        """One record per map, ready for ``pandas.DataFrame``."""
        return [
            {"method": each.name, "in_sample": each.record["in_sample"], **each.scores, **each.seconds} for each in self.shown()
        ]

    def __str__(self) -> str:
        rows = self.rows()
        heads = [textwrap.wrap(row["method"], WIDE) + ["(in-sample)"] * row["in_sample"] for row in rows]
        lines = [["", *(head[i] if i < len(head) else "" for head in heads)] for i in range(max(map(len, heads)))]
        scores = [name for name in SCORES if any(name in row for row in rows)]
        lines += [[SCORES[name], *(_score(row.get(name)) for row in rows)] for name in scores]
        lines += [[SECONDS[name], *(_time(row[name]) for row in rows)] for name in SECONDS]
        widths = [max(map(len, column)) + 3 for column in zip(*lines, strict=True)]
        table = ["".join(_justified(line, widths)).rstrip() for line in lines]
        return "\n".join([*table, "", *self._notes()])

    def _notes(self) -> list[str]:
        fitted, held_out = (part.rows.shape[0] for part in (self.dataset.train, self.dataset.test))
        notes = [f"Fitted to {fitted:,} rows, scored on {held_out:,} others; 1 is the best score."]
        if not self.dataset.test.levels:
            why = "Without labels" if self._colours() is None else "With labels that are a scale, and no classes"
            notes.append(f"{why}, the scores that need classes are left out.")
        if any(result.record["in_sample"] for result in self.results.values()):
            notes.append("(in-sample): can't embed new rows, and was fitted to the held-out ones themselves.")
        compiled = [name for name in COMPILED if name in self.results]
        if compiled:
            notes.append(f"The seconds of {' and '.join(compiled)} include those of a compiler, once in a process.")
        return notes + [f"{name} did not run: {reason}" for name, reason in self.failed.items()]

    def picture(self) -> Any:
        """The maps of the held-out rows side by side; a matplotlib figure."""
        from dre.plot import scatter
        from dre.plot.style import INK, PAPER, pyplot

        shown = self.shown()
        lines = math.ceil(len(shown) / IN_A_LINE)
        columns = math.ceil(len(shown) / lines)
        figure = pyplot().figure(figsize=(PANEL[0] * columns, PANEL[1] * lines), facecolor=PAPER, layout="constrained")
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
        labels = self._colours()
        for axis, each in zip(axes, shown, strict=False):
            scatter(each.places, labels, title=each.name, ax=axis)
            axis.set_xlabel(_caption(each), color=INK, fontsize=9)
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
        if labels is not None and self.dataset.test.levels:
            _list_below(figure, axes, [str(name) for name in unique_labels(labels, len(labels))[0]])
        return figure

    def _colours(self) -> Array | None:
        """Labels that are a scale are no level, as they can't be scored; where there are none at all, the split has zeros."""
        test = self.dataset.test
        return test.labels if test.levels or test.labels.dtype.kind == "f" else None


def _maps_of(name: str, result: Result) -> list[Shown]:
    record = result.record
    stages = [stage for stage in range(len(record["stages"])) if f"test-{stage}" in result.maps]
    found = []
    for stage in dict.fromkeys([stages[0], stages[-1]]):
        told = record["stages"][stage]
        last = stage == stages[-1]
        seconds = [record["fit_seconds"], record["transform_seconds"]] if last else [told["seconds"], None]
        scores = {score: told["scores"][score] for score in SCORES if score in told["scores"]}
        title = name if last else f"{name}, before recursion"
        found.append(Shown(title, record, result.maps[f"test-{stage}"], scores, dict(zip(SECONDS, seconds, strict=True))))
    return found


def _list_below(figure: Any, axes: list[Any], classes: list[str]) -> None:
    """Long names would hide the maps: one list of them below all takes their place."""
    if len(classes) > MAX_LABELS or sum(map(len, classes)) <= WRITTEN:
        return
    from matplotlib.lines import Line2D

    from dre.plot.colors import class_colors

    for text in [text for axis in axes for text in axis.texts]:
        text.remove()
    dots = [Line2D([], [], marker="o", linestyle="", color=colour) for colour in class_colors(len(classes))]
    room = int(figure.get_figwidth() * 72 / (6 * max(map(len, classes)) + 40))  # names beside each other, in points
    columns = max(1, min(room, len(classes)))
    figure.set_figheight(figure.get_figheight() + 0.22 * math.ceil(len(classes) / columns))
    figure.legend(dots, classes, loc="outside lower center", ncols=columns, frameon=False, fontsize=10)


def _caption(each: Shown) -> str:
    score = next(iter(each.scores))
    fit, embed = each.seconds.values()
    parts = [f"{SCORES[score]} {_score(each.scores[score])}", f"fit {_time(fit)} s"]
    parts += [] if embed is None else [f"embed {_time(embed)} s"]
    parts += ["in-sample"] if each.record["in_sample"] else []
    return ", ".join(parts)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.1f}"


def _justified(line: list[str], widths: list[int]) -> list[str]:
    return [f"{line[0]:{widths[0]}s}", *(f"{cell:>{width}s}" for cell, width in zip(line[1:], widths[1:], strict=True))]
