"""Writes the page: places the maps, encodes the arrays and puts them into one HTML file with its scripts."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from dre.atomic import atomic_write, check_absent
from dre.explore.columns import Column
from dre.explore.embedded import EmbeddedModel
from dre.explore.encode import element, encode_array, encode_strings, to_json
from dre.explore.nearest import NearestRows
from dre.explore.placement import Placement, place_maps
from dre.explore.thumbnails import Thumbnails

Array = np.ndarray[Any, Any]
SCRIPTS = (
    *("data", "dom", "view", "grid", "maps", "turn", "orders", "look", "canvas_points", "webgl_points", "draw", "density"),
    *("frames", "class_names", "overlay", "pointer", "tools", "stages", "picture"),
    *("ticks", "scale", "color", "filters", "class_list", "legend", "histogram", "range_fields", "columns", "search"),
    *("neighbors", "card", "rows", "export", "table", "theme", "fragment", "summary", "keyboard", "panel", "start"),
)  # joined in this order
TRAINING = "training"  # style, and first script, of a page that follows a training or whose training has failed
ENGINE = ("program", "table_text", "match_rows", "pixels", "placing")  # what a worker runs, in pages with a model
NEW_ROWS = ("new_rows", "new_marks", "new_card", "new_table", "placer", "decode", "bring")  # the rest of it, before "start"
STYLES = ("page", "panel")


@dataclass(frozen=True, eq=False)
class StageView:
    """A map after one stage of the training, with its title and its scores."""

    title: str
    embedding: Array  # (n, 2) or (n, 3)
    scores: dict[str, float] = field(default_factory=dict)
    kept: float | None = None  # neighbors in the data that are neighbors on the map, on average


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A map with its stages, of which the page shows the last one first."""

    title: str
    stages: list[StageView]

    @property
    def embedding(self) -> Array:
        """After the last stage."""
        return self.stages[-1].embedding


@dataclass(frozen=True, eq=False)
class UnfinishedTraining:
    """Why the training of a map ended before it was done, and how far it came."""

    state: str  # a few words: "stopped by Ctrl-C"
    sentence: str  # the reason
    stage: str  # where the map is from: "stage 0 (x), epoch 3 of 9"
    losses: list[list[Any]] = field(default_factory=list)  # title and values of each curve


@dataclass(frozen=True, eq=False)
class Explorer:
    """The content of a page."""

    title: str
    maps: list[ShownMap]  # of the same rows; the first one is shown, the others can stand beside it
    columns: list[Column] = field(default_factory=list)
    names: list[str] | None = None  # of the rows
    thumbnails: Thumbnails | None = None
    color: str | None = None  # column that colors the points at first
    notes: list[str] = field(default_factory=list)  # how to read the scores
    neighbors: NearestRows | None = None
    names_title: str = "name"  # of the column that names the rows
    title_column: int | None = None  # position of the column that heads the card of a row
    row_numbers: Array | None = None  # (n,), positions of the rows in their file; None numbers them from 0
    model: EmbeddedModel | None = None  # that made the last stage of the first map, and places new rows on it
    unfinished: UnfinishedTraining | None = None  # shown with a map that is only the last frame of its training

    def __post_init__(self) -> None:
        if not self.maps or not all(each.stages for each in self.maps):
            raise ValueError("maps is empty: a page needs at least one map, with at least one stage")
        n = len(self.maps[0].embedding)
        for stage in (stage for each in self.maps for stage in each.stages):
            if stage.embedding.ndim != 2 or len(stage.embedding) != n or stage.embedding.shape[1] not in (2, 3):
                raise ValueError(
                    f"{stage.title}: coordinates have the shape {stage.embedding.shape}, expected ({n}, 2) or ({n}, 3)"
                )
            if not np.isfinite(stage.embedding).all():
                raise ValueError(f"{stage.title}: coordinates contain NaN or infinity, expected finite numbers")
        lengths = {column.name: len(column.values) for column in self.columns}
        lengths |= {} if self.names is None else {"names": len(self.names)}
        lengths |= {} if self.row_numbers is None else {"row_numbers": len(self.row_numbers)}
        lengths |= {} if self.neighbors is None else {"neighbors": len(self.neighbors.ids)}
        for name, length in lengths.items():
            if length != n:
                raise ValueError(f"{name}: {length} values for {n} points, expected one value per point")


def write_page(path: str | Path, explorer: Explorer, *, force: bool = False) -> None:
    """Write the page to an HTML file, atomically.

    Parameters
    ----------
    path : str or Path
        File to write.
    explorer : Explorer
        The content of the page, made by `build_explorer`.
    force : bool, default=False
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Path(folder, "map.html"), Explorer("map", [ShownMap("map", [StageView("", np.zeros((3, 2)))])]))
    ...     Path(folder, "map.html").read_text(encoding="utf-8").splitlines()[0]
    '<!DOCTYPE html>'
    """
    check_absent(path, force=force)
    with atomic_write(path) as part:
        part.write_text(page(explorer), encoding="utf-8")


def page(explorer: Explorer, *, follow: str | None = None) -> str:
    """The page as HTML. It loads nothing from elsewhere, and its content security policy forbids that too.

    ``follow`` is the address of a script beside the page that has the present state of a training, which it then loads again
    and again.
    """
    with_model = explorer.model is not None
    training = "following" if follow is not None else "unfinished" if explorer.unfinished is not None else None
    scripts = SCRIPTS if training is None else (*SCRIPTS, TRAINING, training)
    script = _script(scripts, with_model=with_model)
    styles = [*STYLES, *(["new_rows"] if with_model else []), *([] if training is None else [TRAINING])]
    return Template(_asset("page.html")).substitute(
        title=html.escape(explorer.title.encode("utf-8", "replace").decode()),
        script_source=_script_source(script) + ("" if follow is None else " 'strict-dynamic'"),  # what the script loads itself
        worker="; worker-src blob:" if with_model else "",
        style="\n".join(_asset(f"{name}.css") for name in styles),
        new_rows=_asset("new_rows.html") if with_model else "",
        script=script,
        about=to_json({**_about(explorer), "follow": follow}),
        payload="\n".join(_payload(explorer)),
    )


def _script_source(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _script(scripts: Sequence[str], *, with_model: bool) -> str:
    """All scripts as one. What a worker runs too is a function, whose text the page hands to the worker."""
    texts = [_asset(f"{name}.js") for name in scripts]
    if with_model:
        engine, start = "\n".join(_asset(f"{name}.js") for name in ENGINE), scripts.index("start")
        texts[start:start] = [f"function rowEngine() {{\n{engine}\n}}", *(_asset(f"{name}.js") for name in NEW_ROWS)]
    script = "\n".join(texts)
    return f'"use strict";\n(() => {{\n{script}\n}})();\n'


def _asset(name: str) -> str:
    return files("dre.explore").joinpath("page", name).read_text(encoding="utf-8")


def _about(explorer: Explorer) -> dict[str, Any]:
    placements = place_maps([[stage.embedding for stage in each.stages] for each in explorer.maps])
    neighbors = explorer.neighbors
    return {
        "title": explorer.title,
        "n": len(explorer.maps[0].embedding),
        "maps": [_about_map(each, places) for each, places in zip(explorer.maps, placements, strict=True)],
        "columns": [column.about() for column in explorer.columns],
        "color": explorer.color,
        "named": explorer.names is not None,
        "numbered": explorer.row_numbers is not None,
        "namesTitle": explorer.names_title,
        "card": {"title": explorer.title_column},
        "neighbors": None if neighbors is None else {"k": neighbors.ids.shape[1], "type": neighbors.ids.dtype.name},
        "thumbnails": explorer.thumbnails.about() if explorer.thumbnails else None,
        "notes": explorer.notes,
        "model": explorer.model.description() if explorer.model else None,
        "unfinished": asdict(explorer.unfinished) if explorer.unfinished else None,
    }


def _about_map(shown: ShownMap, places: list[Placement]) -> dict[str, Any]:
    stages = [
        {"title": stage.title, "scores": list(stage.scores.items()), "kept": stage.kept, "place": place.about()}
        for stage, place in zip(shown.stages, places, strict=True)
    ]
    return {"title": shown.title, "components": shown.embedding.shape[1], "stages": stages}


def _payload(explorer: Explorer) -> list[str]:
    """Coordinates, columns, names, neighbors and image sheets. What the page shows first comes first."""
    elements = []
    for i, shown in enumerate(explorer.maps):
        for j, stage in enumerate(shown.stages):
            elements.append(element(f"coordinates-{i}-{j}", encode_array(stage.embedding.T.astype(np.float32))))
    for i, column in enumerate(explorer.columns):
        elements.append(element(f"column-{i}", encode_array(column.values)))
        if column.names is not None:
            elements.append(element(f"classes-{i}", encode_strings(column.names)))
    if explorer.names is not None:
        elements.append(element("names", encode_strings(explorer.names)))
    if explorer.row_numbers is not None:
        elements.append(element("row-numbers", encode_array(explorer.row_numbers.astype(np.uint32))))
    if explorer.neighbors is not None:
        elements.append(element("neighbors", encode_array(explorer.neighbors.ids)))
    if explorer.thumbnails is not None:
        elements += [element(f"sheet-{i}", sheet) for i, sheet in enumerate(explorer.thumbnails.sheets)]
    return elements + (explorer.model.elements() if explorer.model else [])
