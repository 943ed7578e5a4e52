"""Figures of the spec: rows of embeddings side by side, with their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre.metrics.inputs import unique_labels
from dre.plot.colors import class_colors
from dre.plot.style import TEXT
from paper.canvas import Grid
from paper.jobs import FIGURE_SEED
from paper.panels import VIEWS, Viewport, colors_of_rows, draw_dots, full_view
from paper.report.formatting import number
from paper.report.reading import NOT_YET, CellReader
from paper.spec import Data, Figure, Job, Row, Spec
from paper.store import Store

if TYPE_CHECKING:
    from dre.datasets import Dataset
    from dre.datasets.tasic2018 import ReferenceMaps

Array = np.ndarray[Any, Any]
LoadData = Callable[[Data], "Dataset"]
PUBLISHED_IN, PUBLISHED_MAPS = "figure-5", "figure-5-published"  # the figure that published maps go with, and their own
LINES = {"inside": "solid", "border": (0, (2.5, 1.5))}  # outlines of zooms
SCORES = {"nearest_neighbor": "1-NN", "neighborhood_hit": "NH"}


def draw_all(
    spec: Spec, store: Store, load_data: LoadData, folder: Path, *, reference_maps: Callable[[], ReferenceMaps] | None = None
) -> dict[str, Path]:
    """Draw every figure with an embedding on this machine; return the pictures by name.

    An existing picture is kept if some of its embeddings were made on another machine. ``reference_maps`` loads the published
    maps of the RNA-Seq cells, which go with Figure 5; their picture is kept too if they are not available.
    """
    found: dict[str, Path] = {}
    for figure in spec.figures:
        path = folder / f"{figure.name}.webp"
        drawn = None if path.exists() and is_elsewhere(figure, spec, store) else draw_figure(figure, spec, store, load_data)
        if drawn is not None:
            save(drawn, path)
        if path.exists():
            found[figure.name] = path
        if figure.name == PUBLISHED_IN:
            path = folder / f"{PUBLISHED_MAPS}.webp"
            reference = _load_or_none(reference_maps)
            if reference is not None:
                save(draw_published(reference), path)
            if path.exists():
                found[PUBLISHED_MAPS] = path
    return found


def _load_or_none(reference_maps: Callable[[], ReferenceMaps] | None) -> ReferenceMaps | None:
    from dre.datasets import DatasetNotFoundError

    try:
        return None if reference_maps is None else reference_maps()
    except DatasetNotFoundError:
        return None


def save(figure: Any, path: Path) -> Path:
    """Save a figure in the format of its suffix; WebP keeps the page small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140, pil_kwargs={"quality": 90} if path.suffix == ".webp" else {})
    return path


def draw_figure(figure: Figure, spec: Spec, store: Store, load_data: LoadData) -> Any:
    """Return a matplotlib figure, or None if none of its embeddings is on this machine."""
    shared = _FigureData(spec, store, load_data)
    panels = [[_Panel(shared, row, method) for method in row.methods] for row in figure.rows]
    if not any(panel.embedding is not None for line in panels for panel in line):
        return None
    grid = Grid(len(figure.rows), max(len(row.methods) for row in figure.rows))
    above: Row | None = None
    for row, line in zip(figure.rows, panels, strict=True):
        new = above is None or above.methods != row.methods
        titles = [spec.methods[method].title for method in row.methods] if new else []
        axes = grid.add_line(row.title, titles, [panel.scores for panel in line])
        zooms = [other.view for other in figure.rows if _is_zoom_of(other, row)]
        for axis, panel in zip(axes, line, strict=True):
            panel.draw(axis, zooms)
        grid.add_legend(*shared.legend(row))
        above = row
    return grid.finish()


def is_elsewhere(figure: Figure, spec: Spec, store: Store) -> bool:
    """Return whether an embedding of a figure exists, but not on this machine."""
    shared = _FigureData(spec, store, _no_labels)
    panels = (_Panel(shared, row, method) for row in figure.rows for method in row.methods)
    return any(panel.is_elsewhere for panel in panels)


def draw_published(reference: ReferenceMaps) -> Any:
    """Draw the published maps of the RNA-Seq cells, in the published colors of classes and clusters."""
    grid = Grid(len(reference.labels.levels), len(reference.maps))
    for at, (level, labels) in enumerate(reference.labels.levels.items()):
        names, codes = unique_labels(labels, len(labels))
        palette = [reference.labels.colors[level][str(name)] for name in names]
        tints = colors_of_rows(codes, palette)
        axes = grid.add_line(f"RNA-Seq, by {level}", [] if at else list(reference.maps), [])
        for axis, embedding in zip(axes, reference.maps.values(), strict=True):
            draw_dots(axis, embedding, tints, full_view(embedding))
        grid.add_legend([str(name) for name in names], palette)
    return grid.finish()


def _is_zoom_of(other: Row, row: Row) -> bool:
    same = (other.data, other.part) == (row.data, row.part)
    return row.view == "all" and other.view != "all" and same


@dataclass(frozen=True)
class _Labels:
    names: list[str]  # as the spec calls them
    titles: list[str]  # as the legend shows them
    codes: Array
    palette: list[Any]


class _FigureData:
    """What the panels of a figure share: spec, records, and the labels of each data set, loaded once."""

    def __init__(self, spec: Spec, store: Store, load_data: LoadData) -> None:
        self.spec, self.store = spec, store
        self.reader = CellReader(spec, store)
        self._load_data = load_data
        self._loaded: tuple[str, Dataset] | None = None  # one at a time: some are large
        self._labels: dict[tuple[str, str, str | None], _Labels] = {}

    def labels(self, row: Row) -> _Labels:
        """Return labels and colors; classes are those of both parts, so that a class has one color."""
        key = row.data, row.part, row.level
        if key not in self._labels:
            dataset = self._dataset(row.data)
            parts = {"train": dataset.train, "test": dataset.test}
            wanted = {name: part.labels if row.level is None else part.levels[row.level] for name, part in parts.items()}
            names, codes = unique_labels(np.concatenate(list(wanted.values())), sum(map(len, wanted.values())))
            start = 0 if row.part == "train" else len(wanted["train"])
            own = codes[start : start + len(wanted[row.part])]
            called = [str(name) for name in names]
            named = row.level is None and dataset.label_names
            titles = [dataset.label_names[int(name)] for name in names] if named else called
            self._labels[key] = _Labels(called, titles, own, class_colors(len(names)))
        return self._labels[key]

    def _dataset(self, name: str) -> Dataset:
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = name, self._load_data(self.spec.data[name])
        return self._loaded[1]

    def legend(self, row: Row) -> tuple[list[str], list[Any]]:
        labels = self.labels(row)
        return labels.titles, labels.palette


def _no_labels(data: Data) -> Dataset:
    raise AssertionError(f"{data.name}: labels are not needed here")


class _Panel:
    """An embedding, or the reason why there is none."""

    def __init__(self, shared: _FigureData, row: Row, method: str) -> None:
        self.shared, self.row, self.method = shared, row, shared.spec.methods[method]
        self.job = Job(row.data, self.method.run, FIGURE_SEED)
        self.record, self.missing = shared.reader.record(self.job)
        self.embedding = None if self.record is None else shared.store.map(self.job, row.part, self.method.stage)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it exists, but not on this machine; in-sample methods have none of the training rows."""
        made = self.record is not None and not (self.record["in_sample"] and self.row.part == "train")
        return made and self.embedding is None

    @property
    def reason(self) -> str:
        if self.missing == NOT_YET:
            return self.shared.reader.reason(self.row.data, self.method.name) or NOT_YET
        if self.record is None:
            return self.missing
        if self.record["in_sample"] and self.row.part == "train":
            return "fitted to the test rows: no embedding of training rows"
        return "its embedding is on another machine"

    @property
    def scores(self) -> str:
        """Scores of the test rows, for panels that show all of them."""
        if self.record is None or self.row.part != "test" or self.row.view != "all":
            return ""
        stages = self.record["stages"]
        known = stages[-1 if self.method.stage is None else self.method.stage].get("scores", {})
        by_level = known.get("neighborhood_hit_by_level", {})
        if self.row.level in list(by_level)[1:]:  # the record only has the hit of these labels
            known = {"neighborhood_hit": by_level[self.row.level]}
        parts = [f"{title} {number(known[name])}" for name, title in SCORES.items() if known.get(name) is not None]
        return ("in-sample " if self.record["in_sample"] else "") + ", ".join(parts)

    @cached_property
    def labels(self) -> _Labels:
        return self.shared.labels(self.row)

    @property
    def codes(self) -> Array:
        """Codes of the embedded rows, which are the first ones of a slow method."""
        assert self.embedding is not None
        return self.labels.codes[: len(self.embedding)]

    def window(self, view: str) -> Viewport:
        """Return the window of "all" or of a zoom such as "border 9"."""
        assert self.embedding is not None
        kind, _, name = view.partition(" ")
        if kind == "all":
            return full_view(self.embedding)
        if kind not in VIEWS or name not in self.labels.names:
            raise ValueError(
                f"view={view!r} of row {self.row.title!r}: expected 'all', or {' or '.join(VIEWS)} and a class, "
                f"such as '{next(iter(VIEWS))} {self.labels.names[0]}'"
            )
        return VIEWS[kind](self.embedding, self.codes == self.labels.names.index(name))

    def draw(self, axis: Any, zooms: list[str]) -> None:
        if self.embedding is None:
            Grid.add_text(axis, self.reason)
            return
        if len(self.embedding) > len(self.labels.codes):
            Grid.add_text(axis, f"its embedding has {len(self.embedding):,} rows, but the data {len(self.labels.codes):,}")
            return
        draw_dots(axis, self.embedding, colors_of_rows(self.codes, self.labels.palette), self.window(self.row.view))
        for zoom in zooms:
            _outline(axis, self.window(zoom), zoom)
        if self.row.view != "all":
            axis.spines[:].set(color=TEXT, linestyle=LINES[self.row.view.partition(" ")[0]], linewidth=1.0)


def _outline(axis: Any, window: Viewport, view: str) -> None:
    from matplotlib.patches import Rectangle

    left, _, bottom, _ = window.extent
    style = LINES[view.partition(" ")[0]]
    axis.add_patch(Rectangle((left, bottom), window.side, window.side, fill=False, color=TEXT, linewidth=0.9, linestyle=style))
