"""The result of a comparison: embeddings and scores of all methods, as a table and as a figure."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.compare.measure import Measurement
from dre.datasets import Dataset
from dre.metrics.inputs import unique_labels
from dre.plot.scatter import MAX_LABELS

Array = np.ndarray[Any, Any]
SCORES = {  # in the order of the table; 1 is the best value of each
    "nearest_neighbor": "1-NN accuracy",
    "neighborhood_hit": "neighborhood hit",
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "shepard_goodness": "Shepard goodness",
    "silhouette": "silhouette",
    "centroid_correlation": "centroid correlation",
}
SECONDS = {"fit_seconds": "fit, seconds", "transform_seconds": "embed, seconds"}
COMPILED = ("umap", "dl-umap")  # by Numba, in the first fit of a process
HEADER_WIDTH = 12  # characters of a method's name per line
MAX_COLUMNS = 4  # panels in a row of the figure
PANEL = (4.2, 4.7)  # inches
MAX_NAMES = 60  # characters of all class names together, up to which they are written into the panels


@dataclass(frozen=True)
class MapScores:
    """An embedding of the held-out rows, after the last stage of a method or before its first recursion."""

    name: str
    record: dict[str, Any]
    embedding: Array
    scores: dict[str, float]
    seconds: dict[str, float | None]  # by the keys of SECONDS


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same rows; prints as a table.

    ``results`` has the measurement of each method, ``failed`` the reason of each that failed.
    """

    dataset: Dataset
    results: dict[str, Measurement]
    failed: dict[str, str]

    def maps(self) -> list[MapScores]:
        """Return the embedding of each method, and the one before its first recursion, from the same fit."""
        return [each for name, result in self.results.items() for each in _maps_of(name, result)]

    def to_records(self) -> list[dict[str, Any]]:
        """Return one record per embedding, ready for ``pandas.DataFrame``."""
        return [
            {"method": each.name, "in_sample": each.record["in_sample"], **each.scores, **each.seconds} for each in self.maps()
        ]

    def __str__(self) -> str:
        rows = self.to_records()
        heads = [textwrap.wrap(row["method"], HEADER_WIDTH) + ["(in-sample)"] * row["in_sample"] for row in rows]
        lines = [["", *(head[i] if i < len(head) else "" for head in heads)] for i in range(max(map(len, heads)))]
        scores = [name for name in SCORES if any(name in row for row in rows)]
        lines += [[SCORES[name], *(_score(row.get(name)) for row in rows)] for name in scores]
        lines += [[SECONDS[name], *(_time(row[name]) for row in rows)] for name in SECONDS]
        widths = [max(map(len, column)) + 3 for column in zip(*lines, strict=True)]
        table = ["".join(_justified(line, widths)).rstrip() for line in lines]
        return "\n".join([*table, "", *self._notes()])

    def _notes(self) -> list[str]:
        fitted, held_out = (part.rows.shape[0] for part in (self.dataset.train, self.dataset.test))
        notes = [f"Fitted to {fitted:,} rows, scored on {held_out:,} held-out rows; 1 is the best score."]
        if not self.dataset.test.levels:
            why = "Without labels" if self._colors() is None else "With continuous labels"
            notes.append(f"{why}, scores that need classes are left out.")
        if any(result.record["in_sample"] for result in self.results.values()):
            notes.append("(in-sample): can't embed new rows; fitted to the held-out rows themselves.")
        compiled = [name for name in COMPILED if name in self.results]
        if compiled:
            notes.append(f"The seconds of {' and '.join(compiled)} include compilation, once per process.")
        return notes + [f"{name} failed: {reason}" for name, reason in self.failed.items()]

    def figure(self) -> Any:
        """Draw the embeddings of the held-out rows side by side; return a matplotlib figure."""
        from dre.plot import scatter
        from dre.plot.style import BACKGROUND, TEXT, pyplot

        shown = self.maps()
        lines = math.ceil(len(shown) / MAX_COLUMNS)
        columns = math.ceil(len(shown) / lines)
        figure = pyplot().figure(figsize=(PANEL[0] * columns, PANEL[1] * lines), facecolor=BACKGROUND, layout="constrained")
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
        labels = self._colors()
        for axis, each in zip(axes, shown, strict=False):
            scatter(each.embedding, labels, title=each.name, ax=axis)
            axis.set_xlabel(_caption(each), color=TEXT, fontsize=9)
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
        if labels is not None and self.dataset.test.levels:
            _add_legend(figure, axes, [str(name) for name in unique_labels(labels, len(labels))[0]])
        return figure

    def _colors(self) -> Array | None:
        """Labels to color by. Continuous labels are no level, since they can't be scored; a split without labels has zeros."""
        test = self.dataset.test
        return test.labels if test.levels or test.labels.dtype.kind == "f" else None


def _maps_of(name: str, result: Measurement) -> list[MapScores]:
    record = result.record
    stages = [stage for stage in range(len(record["stages"])) if f"test-{stage}" in result.maps]
    found = []
    for stage in dict.fromkeys([stages[0], stages[-1]]):
        after = record["stages"][stage]
        last = stage == stages[-1]
        seconds = [record["fit_seconds"], record["transform_seconds"]] if last else [after["seconds"], None]
        scores = {score: after["scores"][score] for score in SCORES if score in after["scores"]}
        title = name if last else f"{name}, before recursion"
        found.append(MapScores(title, record, result.maps[f"test-{stage}"], scores, dict(zip(SECONDS, seconds, strict=True))))
    return found


def _add_legend(figure: Any, axes: list[Any], classes: list[str]) -> None:
    """Replace long class names, which would cover the points, by one legend below all panels."""
    if len(classes) > MAX_LABELS or sum(map(len, classes)) <= MAX_NAMES:
        return
    from matplotlib.lines import Line2D

    from dre.plot.colors import class_colors

    for text in [text for axis in axes for text in axis.texts]:
        text.remove()
    dots = [Line2D([], [], marker="o", linestyle="", color=color) for color in class_colors(len(classes))]
    room = int(figure.get_figwidth() * 72 / (6 * max(map(len, classes)) + 40))  # names side by side, in points
    columns = max(1, min(room, len(classes)))
    figure.set_figheight(figure.get_figheight() + 0.22 * math.ceil(len(classes) / columns))
    figure.legend(dots, classes, loc="outside lower center", ncols=columns, frameon=False, fontsize=10)


def _caption(each: MapScores) -> str:
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
