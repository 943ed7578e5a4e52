"""The result of a comparison: embeddings and scores of all methods, as a table and as a figure."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.compare.measure import Measurement
from dre.datasets import Dataset
from dre.plot.colors import Coloring, as_classes, color_by

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
CAPTIONS = {"nearest_neighbor": "1-NN", "trustworthiness": "trustworthiness"}  # scores below the maps
HEADER_WIDTH = 12  # characters of a method's name per line


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

    ``results`` has the measurement of each method, ``failed`` the reason of each that failed, ``label_name`` the title of the
    legend.
    """

    dataset: Dataset
    results: dict[str, Measurement]
    failed: dict[str, str]
    label_name: str = ""

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

    def figure(self, style: str = "light") -> Any:
        """Draw the embeddings of the held-out rows side by side; return a matplotlib figure.

        Methods that failed have a panel with the reason. ``style`` is "light" or "dark".
        """
        from dre.compare.figure import draw_comparison

        shown = self.maps()
        maps = {each.name: each.embedding for each in shown}
        captions = [_caption(each) for each in shown]
        named = {"label_name": self.label_name, "style": style}
        return draw_comparison(maps, captions, self._coloring(), self.failed, **named)

    def _coloring(self) -> Coloring:
        """Colors by class if the labels are scored as classes, else by value."""
        labels = self._colors()
        if labels is None:
            return None
        return as_classes(labels) if self.dataset.test.levels else color_by(labels, len(labels), self.label_name or None)

    def _colors(self) -> Array | None:
        """Labels to color by. Continuous labels are no level, since they can't be scored; a split without labels has zeros."""
        test = self.dataset.test
        return test.labels if test.levels or len(np.unique(test.labels)) > 1 else None


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


def _caption(each: MapScores) -> str:
    """A few scores, and how long it took."""
    scores = [f"{title} {_score(each.scores[name])}" for name, title in CAPTIONS.items() if name in each.scores]
    fit, embed = each.seconds.values()
    times = [f"fit {_time(fit)} s"]
    times += [] if embed is None else [f"embed {_time(embed)} s"]
    times += ["in-sample"] if each.record["in_sample"] else []
    return f"{' · '.join(scores)}\n{' · '.join(times)}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.1f}"


def _justified(line: list[str], widths: list[int]) -> list[str]:
    return [f"{line[0]:{widths[0]}s}", *(f"{cell:>{width}s}" for cell, width in zip(line[1:], widths[1:], strict=True))]
