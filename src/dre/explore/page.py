"""The page: places after each stage, what is known of the rows, images, and the scripts that show them."""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from dre.atomic import atomic_write
from dre.explore.aligned import aligned
from dre.explore.columns import Column
from dre.explore.packed import in_a_page, packed, packed_texts
from dre.explore.thumbnails import Thumbnails

Array = np.ndarray[Any, Any]
GRID = 2**16 - 1  # steps of a place, in each direction
# One idea each; together they are one script, in this order.
SCRIPTS = ("data", "view", "paint", "colours", "marks", "find", "card", "choice", "stages", "panel", "start")


@dataclass(frozen=True, eq=False)
class Stage:
    """The map after a stage of the training: its places, and what it scores."""

    title: str
    places: Array  # (n, 2)
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Explorer:
    """All that a page shows."""

    title: str
    stages: list[Stage]
    columns: list[Column] = field(default_factory=list)
    names: list[str] | None = None  # of the rows
    thumbnails: Thumbnails | None = None
    colour: str | None = None  # the column by which points are coloured at first
    notes: list[str] = field(default_factory=list)  # what the reader should know of the scores

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a page needs the places of at least one stage")
        n = len(self.stages[0].places)
        for stage in self.stages:
            if stage.places.shape != (n, 2):
                raise ValueError(f"{stage.title}: places of the shape {stage.places.shape}; a page shows maps of ({n}, 2)")
            if not np.isfinite(stage.places).all():
                raise ValueError(f"{stage.title}: some places are not finite numbers")
        beside = {column.name: len(column.values) for column in self.columns}
        beside |= {} if self.names is None else {"names": len(self.names)}
        for name, count in beside.items():
            if count != n:
                raise ValueError(f"{name}: {count} values for {n} points")


def write_page(path: str | Path, explorer: Explorer) -> None:
    """Write the page, whole or not at all."""
    with atomic_write(path) as part:
        part.write_text(page(explorer), encoding="utf-8")


def page(explorer: Explorer) -> str:
    """HTML that asks no other place for anything, and by its own policy may not."""
    places, square = _on_grid(explorer.stages)
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    return Template(_part("page.html")).substitute(
        title=html.escape(explorer.title.encode("utf-8", "replace").decode()),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=_part("look.css"),
        script=script,
        about=in_a_page({**_about(explorer), "square": square}),
        carried="\n".join(_carried(explorer, places)),
    )


def _part(name: str) -> str:
    return files("dre.explore").joinpath("page", name).read_text(encoding="utf-8")


def _about(explorer: Explorer) -> dict[str, Any]:
    return {
        "title": explorer.title,
        "n": len(explorer.stages[0].places),
        "stages": [{"title": stage.title, "scores": list(stage.scores.items())} for stage in explorer.stages],
        "columns": [column.about() for column in explorer.columns],
        "colour": explorer.colour,
        "named": explorer.names is not None,
        "thumbnails": explorer.thumbnails.about() if explorer.thumbnails else None,
        "notes": explorer.notes,
    }


def _carried(explorer: Explorer, places: list[Array]) -> list[str]:
    """Elements that no browser takes for anything but text: places, columns, names, sheets of images."""
    found = [_element(f"places-{i}", packed(each)) for i, each in enumerate(places)]
    for i, column in enumerate(explorer.columns):
        found.append(_element(f"column-{i}", packed(column.values)))
        if column.names is not None:
            found.append(_element(f"classes-{i}", packed_texts(column.names)))
    if explorer.names is not None:
        found.append(_element("names", packed_texts(explorer.names)))
    if explorer.thumbnails is not None:
        found += [_element(f"sheet-{i}", sheet) for i, sheet in enumerate(explorer.thumbnails.sheets)]
    return found


def _element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


def _on_grid(stages: list[Stage]) -> tuple[list[Array], dict[str, float]]:
    """Stages over each other, within one square: uint16 (2, n) each, all x before all y, which packs better; and the square."""
    maps = aligned([stage.places for stage in stages])
    low, high = np.min([each.min(0) for each in maps], axis=0), np.max([each.max(0) for each in maps], axis=0)
    middle, side = (low + high) / 2, float((high - low).max()) or 1.0
    steps = [np.round(((each - middle) / side + 0.5) * GRID).astype(np.uint16).T for each in maps]
    return steps, {"x": float(middle[0]), "y": float(middle[1]), "side": side}
