"""Writes the page: aligns the maps, encodes the arrays and puts them into one HTML file with its scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from dre.atomic import atomic_write
from dre.explore.columns import Column
from dre.explore.thumbnails import Thumbnails
from dre.metrics.procrustes import align_stages

Array = np.ndarray[Any, Any]
GRID = 2**16 - 1  # coordinates are rounded to uint16
SCRIPTS = (
    *("data", "view", "maps", "canvas_points", "draw", "class_names", "overlay", "pointer", "tools"),
    *("color", "select", "stages", "controls"),
)
GZIP_LEVEL = 6
# Characters that could end the element around a text, or start another. In JSON they occur only inside strings.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


@dataclass(frozen=True, eq=False)
class StageView:
    """A map after one stage of the training, with its title and its scores."""

    title: str
    embedding: Array  # (n, 2)
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Explorer:
    """The content of a page."""

    title: str
    stages: list[StageView]
    columns: list[Column] = field(default_factory=list)
    names: list[str] | None = None  # of the rows
    thumbnails: Thumbnails | None = None
    color: str | None = None  # column that colors the points at first
    notes: list[str] = field(default_factory=list)  # how to read the scores

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("stages is empty: a page needs at least one map")
        n = len(self.stages[0].embedding)
        for stage in self.stages:
            if stage.embedding.shape != (n, 2):
                raise ValueError(f"{stage.title}: coordinates have the shape {stage.embedding.shape}, expected ({n}, 2)")
            if not np.isfinite(stage.embedding).all():
                raise ValueError(f"{stage.title}: coordinates contain NaN or infinity, expected finite numbers")
        lengths = {column.name: len(column.values) for column in self.columns}
        lengths |= {} if self.names is None else {"names": len(self.names)}
        for name, length in lengths.items():
            if length != n:
                raise ValueError(f"{name}: {length} values for {n} points, expected one value per point")


def write_page(path: str | Path, explorer: Explorer) -> None:
    """Write the page to an HTML file, atomically.

    Parameters
    ----------
    path : str or Path
        File to write. An existing file is replaced.
    explorer : Explorer
        The content of the page, made by `build_explorer`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Path(folder, "map.html"), Explorer("map", [StageView("map", np.zeros((3, 2)))]))
    ...     Path(folder, "map.html").read_text(encoding="utf-8").splitlines()[0]
    '<!DOCTYPE html>'
    """
    with atomic_write(path) as part:
        part.write_text(page(explorer), encoding="utf-8")


def page(explorer: Explorer) -> str:
    """The page as HTML. It loads nothing from elsewhere, and its content security policy forbids that too."""
    coordinates, square = _quantize(explorer.stages)
    script = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    return Template(_asset("page.html")).substitute(
        title=html.escape(explorer.title.encode("utf-8", "replace").decode()),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=_asset("page.css"),
        script=script,
        about=to_json({**_about(explorer), "square": square}),
        payload="\n".join(_payload(explorer, coordinates)),
    )


def _asset(name: str) -> str:
    return files("dre.explore").joinpath("page", name).read_text(encoding="utf-8")


def _about(explorer: Explorer) -> dict[str, Any]:
    return {
        "title": explorer.title,
        "n": len(explorer.stages[0].embedding),
        "stages": [{"title": stage.title, "scores": list(stage.scores.items())} for stage in explorer.stages],
        "columns": [column.about() for column in explorer.columns],
        "color": explorer.color,
        "named": explorer.names is not None,
        "thumbnails": explorer.thumbnails.about() if explorer.thumbnails else None,
        "notes": explorer.notes,
    }


def _payload(explorer: Explorer, coordinates: list[Array]) -> list[str]:
    """Coordinates, columns, names and image sheets, each in an element that browsers treat as plain text."""
    elements = [_element(f"coordinates-{i}", _encode(each)) for i, each in enumerate(coordinates)]
    for i, column in enumerate(explorer.columns):
        elements.append(_element(f"column-{i}", _encode(column.values)))
        if column.names is not None:
            elements.append(_element(f"classes-{i}", _encode_strings(column.names)))
    if explorer.names is not None:
        elements.append(_element("names", _encode_strings(explorer.names)))
    if explorer.thumbnails is not None:
        elements += [_element(f"sheet-{i}", sheet) for i, sheet in enumerate(explorer.thumbnails.sheets)]
    return elements


def _element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


def _encode(values: Array) -> str:
    """Little-endian, gzip and base64, which browsers decode without a library."""
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return _compress(little.tobytes())


def _encode_strings(values: list[str]) -> str:
    return _compress(json.dumps(values).encode())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, GZIP_LEVEL, mtime=0)).decode("ascii")


def to_json(value: Any) -> str:
    """JSON that is safe inside an HTML element.

    >>> to_json(["</script>"])
    '["\\\\u003c/script\\\\u003e"]'
    """
    return json.dumps(value, allow_nan=False).translate(UNSAFE)


def _quantize(stages: list[StageView]) -> tuple[list[Array], dict[str, float]]:
    """Aligned coordinates on a grid over one square, uint16 (2, n) each: all x before all y compresses better."""
    maps = align_stages([stage.embedding.astype(np.float64) for stage in stages], scale="match")
    low, high = np.min([each.min(0) for each in maps], axis=0), np.max([each.max(0) for each in maps], axis=0)
    center, side = (low + high) / 2, float((high - low).max()) or 1.0
    steps = [np.round(((each - center) / side + 0.5) * GRID).astype(np.uint16).T for each in maps]
    return steps, {"x": float(center[0]), "y": float(center[1]), "side": side}
