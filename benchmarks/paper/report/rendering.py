"""Render a report by the templates beside this file: a self-contained HTML page, and Markdown."""

from __future__ import annotations

import base64
import os
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from paper.spec import Spec

LIBRARIES = {"jinja2": "jinja2", "matplotlib.figure": "matplotlib"}  # modules and their libraries
INSTALL = "pip install 'deep-recursive-embedding[bench,report]'"
TEMPLATES = Path(__file__).parent
# Characters with a meaning in Markdown inside a line or a cell.
ESCAPES = {"\\": "\\\\", "|": "\\|", "<": "&lt;", "*": "\\*", "`": "\\`", "](": "]\\("}
KINDS = {".png": "png", ".webp": "webp", ".jpg": "jpeg", ".svg": "svg+xml"}
# Titles and captions of pictures that the spec does not have.
UNPLANNED = {
    "figure-1": ("Figure 1: the two networks", "Drawn from the modules that the code builds for MNIST."),
    "figure-2": ("Figure 2: the schematic", "Drawn from the schedule of the paper's recipe."),
    "figure-5-published": (
        "Figure 5, continued: published maps of the RNA-Seq cells",
        "Maps of the same cells by other authors, in the published colors of classes and clusters.",
    ),
}


def needed(module: str) -> Any:
    """Import a module, or raise an ``ImportError`` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise ImportError(f"{LIBRARIES[module]} is needed for the report and its figures: {INSTALL}") from problem


def check_installed() -> None:
    """Raise an ``ImportError`` if a library for the report is missing, before hours of work."""
    for module in LIBRARIES:
        needed(module)


@dataclass(frozen=True)
class Remarks:
    """Notes on the paper's slips and on the protocol, from notes.toml."""

    slips: tuple[str, ...]
    protocol: tuple[str, ...]


def remarks() -> Remarks:
    """Read the notes."""
    notes = tomllib.loads((TEMPLATES / "notes.toml").read_text(encoding="utf-8"))
    return Remarks(tuple(notes["slips"]), tuple(notes["protocol"]))


@dataclass(frozen=True)
class Picture:
    """An image of the report."""

    name: str
    title: str
    about: str
    path: Path

    def relative_to(self, folder: Path) -> str:
        """Return the path as seen from a folder."""
        return Path(os.path.relpath(self.path, folder)).as_posix()

    def uri(self) -> str:
        """Return the image as a data URI."""
        if self.path.suffix not in KINDS:
            raise ValueError(f"{self.path}: a page can show {', '.join(KINDS)}; save the picture as one of these")
        return f"data:image/{KINDS[self.path.suffix]};base64,{base64.b64encode(self.path.read_bytes()).decode()}"


def pictures(figures: dict[str, Path], spec: Spec) -> list[Picture]:
    """Return the pictures with titles and captions."""
    captions = {figure.name: (figure.title, " ".join(figure.about.split())) for figure in spec.figures}
    found = []
    for name, path in figures.items():
        title, about = {**UNPLANNED, **captions}.get(name, (name.replace("-", " ").capitalize(), ""))
        found.append(Picture(name, title, about, path))
    return found


class Plain(str):
    """Markdown that is not escaped."""

    __slots__ = ()


def as_page(report: Any) -> str:
    """Render the HTML page."""
    environment = _environment(autoescape=True)
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    return str(environment.get_template("page.html.jinja").render(report=report, style=style))


def as_markdown(report: Any, folder: Path) -> str:
    """Render Markdown; images are linked relative to the folder."""
    environment = _environment(autoescape=False, finalize=escaped)
    environment.filters["plain"] = Plain
    return str(environment.get_template("report.md.jinja").render(report=report, folder=folder))


def escaped(value: Any) -> Any:
    """Escape Markdown in a text.

    >>> escaped("a | b\\n<script>"), escaped(Plain("**a**"))
    ('a \\\\| b &lt;script>', '**a**')
    """
    if not isinstance(value, str) or isinstance(value, Plain):
        return value
    text = " ".join(value.split())
    for special, harmless in ESCAPES.items():
        text = text.replace(special, harmless)
    return text


def _environment(**options: Any) -> Any:
    jinja = needed("jinja2")
    loader, strict = jinja.FileSystemLoader(TEMPLATES), jinja.StrictUndefined
    return jinja.Environment(loader=loader, undefined=strict, trim_blocks=True, lstrip_blocks=True, **options)
