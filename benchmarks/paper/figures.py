"""Figures of the plans: maps side by side, rows of them under each other, with the scores that their records have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre.compare.cells import Cells
from dre.compare.jobs import DRAWN_SEED
from dre.compare.plan import Data, Figure, Job, Row
from dre.compare.plans import Plans
from dre.metrics.inputs import unique_labels
from dre.plot.colors import class_colors
from dre.plot.style import INK
from paper.dots import colour_of_rows, draw_dots
from paper.grid import Grid
from paper.report.reading import NOT_YET, Reader
from paper.report.wording import number
from paper.zoom import VIEWS, Window, whole

if TYPE_CHECKING:
    from dre.datasets import Dataset
    from dre.datasets.tasic2018 import ReferenceMaps

Array = np.ndarray[Any, Any]
Loading = Callable[[Data], "Dataset"]
PUBLISHED_IN, PUBLISHED_MAPS = "figure-5", "figure-5-published"  # the figure that the published maps of cells belong to
LINES = {"inside": "solid", "border": (0, (2.5, 1.5))}  # of the rectangles that say where a zoom is
SCORES = {"nearest_neighbor": "1-NN", "neighborhood_hit": "NH"}


def draw_all(
    plans: Plans, cells: Cells, loading: Loading, folder: Path, *, cells_maps: Callable[[], ReferenceMaps] | None = None
) -> dict[str, Path]:
    """Draw every figure that has a map on this machine; gives the pictures by the names of the figures.

    A picture that is there already is kept where some of its maps were made on another machine and are not on this one.
    ``cells_maps`` gets the published maps of the RNA-Seq cells, which go with Figure 5; their picture, too, is kept where
    they can't be had.
    """
    found: dict[str, Path] = {}
    for figure in plans.figures:
        path = folder / f"{figure.name}.webp"
        uniform_like = None if path.exists() and away(figure, plans, cells) else draw_figure(figure, plans, cells, loading)
        if uniform_like is not None:
            save(uniform_like, path)
        if path.exists():
            found[figure.name] = path
        if figure.name == PUBLISHED_IN:
            path = folder / f"{PUBLISHED_MAPS}.webp"
            reference = _at_hand(cells_maps)
            if reference is not None:
                save(draw_published(reference), path)
            if path.exists():
                found[PUBLISHED_MAPS] = path
    return found


def _at_hand(cells_maps: Callable[[], ReferenceMaps] | None) -> ReferenceMaps | None:
    from dre.datasets import DatasetNotFoundError

    try:
        return None if cells_maps is None else cells_maps()
    except DatasetNotFoundError:
        return None


def save(figure: Any, path: Path) -> Path:
    """In the format that the name ends in; WebP keeps a page of maps small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140, pil_kwargs={"quality": 90} if path.suffix == ".webp" else {})
    return path


def draw_figure(figure: Figure, plans: Plans, cells: Cells, loading: Loading) -> Any:
    """A matplotlib figure, one line of panels per row of the plan; None where not one of its maps is on this machine."""
    shelf = _Shelf(plans, cells, loading)
    panels = [[_Panel(shelf, row, method) for method in row.methods] for row in figure.rows]
    if not any(panel.places is not None for line in panels for panel in line):
        return None
    grid = Grid(len(figure.rows), max(len(row.methods) for row in figure.rows))
    above: Row | None = None
    for row, line in zip(figure.rows, panels, strict=True):
        new = above is None or above.methods != row.methods
        titles = [plans.methods[method].title for method in row.methods] if new else []
        axes = grid.add_line(row.title, titles, [panel.scores for panel in line])
        zooms = [other.view for other in figure.rows if _is_zoom_of(other, row)]
        for axis, panel in zip(axes, line, strict=True):
            panel.draw(axis, zooms)
        grid.add_legend(*shelf.legend(row))
        above = row
    return grid.finished()


def away(figure: Figure, plans: Plans, cells: Cells) -> bool:
    """Whether a map of it was made, and is not on this machine."""
    shelf = _Shelf(plans, cells, _no_labels)
    panels = (_Panel(shelf, row, method) for row in figure.rows for method in row.methods)
    return any(panel.is_away for panel in panels)


def draw_published(reference: ReferenceMaps) -> Any:
    """The published maps of the RNA-Seq cells, in the published colours of the classes and of the clusters."""
    grid = Grid(len(reference.labels.levels), len(reference.maps))
    for at, (level, labels) in enumerate(reference.labels.levels.items()):
        names, codes = unique_labels(labels, len(labels))
        palette = [reference.labels.colors[level][str(name)] for name in names]
        tints = colour_of_rows(codes, palette)
        axes = grid.add_line(f"RNA-Seq, by {level}", [] if at else list(reference.maps), [])
        for axis, places in zip(axes, reference.maps.values(), strict=True):
            draw_dots(axis, places, tints, whole(places))
        grid.add_legend([str(name) for name in names], palette)
    return grid.finished()


def _is_zoom_of(other: Row, row: Row) -> bool:
    same = (other.data, other.part) == (row.data, row.part)
    return row.view == "all" and other.view != "all" and same


@dataclass(frozen=True)
class _Labels:
    names: list[str]  # as plans call them
    titles: list[str]  # as people do
    codes: Array
    palette: list[Any]


class _Shelf:
    """What the panels of a figure share: plans, records, and the labels of each data set, loaded once."""

    def __init__(self, plans: Plans, cells: Cells, loading: Loading) -> None:
        self.plans, self.cells = plans, cells
        self.reader = Reader(plans, cells)
        self._loading = loading
        self._loaded: tuple[str, Dataset] | None = None  # one at a time: some are large
        self._labels: dict[tuple[str, str, str | None], _Labels] = {}

    def labels(self, row: Row) -> _Labels:
        """Classes are those of both parts, so that a class has the same colour in both."""
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
            self._loaded = name, self._loading(self.plans.data[name])
        return self._loaded[1]

    def legend(self, row: Row) -> tuple[list[str], list[Any]]:
        labels = self.labels(row)
        return labels.titles, labels.palette


def _no_labels(data: Data) -> Dataset:
    raise AssertionError(f"{data.name} was to be loaded, where only its maps are looked for")


class _Panel:
    """One map, or the reason why there is none."""

    def __init__(self, shelf: _Shelf, row: Row, method: str) -> None:
        self.shelf, self.row, self.method = shelf, row, shelf.plans.methods[method]
        self.job = Job(row.data, self.method.run, DRAWN_SEED)
        self.record, self.missing = shelf.reader.record(self.job)
        self.places = None if self.record is None else shelf.cells.map(self.job, row.part, self.method.stage)

    @property
    def is_away(self) -> bool:
        """Made, and not on this machine; of training rows there is none where the test rows were fitted."""
        made = self.record is not None and not (self.record["in_sample"] and self.row.part == "train")
        return made and self.places is None

    @property
    def reason(self) -> str:
        if self.missing == NOT_YET:
            return self.shelf.reader.reason(self.row.data, self.method.name) or NOT_YET
        if self.record is None:
            return self.missing
        if self.record["in_sample"] and self.row.part == "train":
            return "fitted to the test rows: there is no map of training rows"
        return "its map is not on this machine"

    @property
    def scores(self) -> str:
        """Of the test rows, under the title of the panel that shows all of them."""
        if self.record is None or self.row.part != "test" or self.row.view != "all":
            return ""
        stages = self.record["stages"]
        known = stages[-1 if self.method.stage is None else self.method.stage].get("scores", {})
        by_level = known.get("neighborhood_hit_by_level", {})
        if self.row.level in list(by_level)[1:]:  # the record has the hit of these labels, and no more
            known = {"neighborhood_hit": by_level[self.row.level]}
        parts = [f"{title} {number(known[name])}" for name, title in SCORES.items() if known.get(name) is not None]
        return ("in-sample " if self.record["in_sample"] else "") + ", ".join(parts)

    @cached_property
    def labels(self) -> _Labels:
        return self.shelf.labels(self.row)

    @property
    def codes(self) -> Array:
        """Of the rows that were embedded: the first ones, where that takes long."""
        assert self.places is not None
        return self.labels.codes[: len(self.places)]

    def window(self, view: str) -> Window:
        """All of it, or a zoom such as "border 9"."""
        assert self.places is not None
        kind, _, name = view.partition(" ")
        if kind == "all":
            return whole(self.places)
        if kind not in VIEWS or name not in self.labels.names:
            raise ValueError(
                f"view={view!r} of the row {self.row.title!r}: expected 'all', or {' or '.join(VIEWS)} and a class, "
                f"such as '{next(iter(VIEWS))} {self.labels.names[0]}'"
            )
        return VIEWS[kind](self.places, self.codes == self.labels.names.index(name))

    def draw(self, axis: Any, zooms: list[str]) -> None:
        if self.places is None:
            Grid.say(axis, self.reason)
            return
        if len(self.places) > len(self.labels.codes):
            Grid.say(axis, f"its map has {len(self.places):,} rows, but the data {len(self.labels.codes):,}")
            return
        draw_dots(axis, self.places, colour_of_rows(self.codes, self.labels.palette), self.window(self.row.view))
        for zoom in zooms:
            _outline(axis, self.window(zoom), zoom)
        if self.row.view != "all":
            axis.spines[:].set(color=INK, linestyle=LINES[self.row.view.partition(" ")[0]], linewidth=1.0)


def _outline(axis: Any, window: Window, view: str) -> None:
    from matplotlib.patches import Rectangle

    left, _, bottom, _ = window.extent
    style = LINES[view.partition(" ")[0]]
    axis.add_patch(Rectangle((left, bottom), window.side, window.side, fill=False, color=INK, linewidth=0.9, linestyle=style))
