"""Lays a report out by the templates beside this file: a page that needs no other file, and Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.report.installed import needed

TEMPLATES = Path(__file__).parent
# What would be read as Markdown in the middle of a line or of a cell.
ESCAPES = {"\\": "\\\\", "|": "\\|", "<": "&lt;", "*": "\\*", "`": "\\`", "](": "]\\("}


class Plain(str):
    """A text that is Markdown already."""

    __slots__ = ()


def as_page(report: Any) -> str:
    environment = _environment(autoescape=True)
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    return str(environment.get_template("page.html.jinja").render(report=report, style=style))


def as_markdown(report: Any, folder: Path) -> str:
    environment = _environment(autoescape=False, finalize=escaped)
    environment.filters["plain"] = Plain
    return str(environment.get_template("report.md.jinja").render(report=report, folder=folder))


def escaped(value: Any) -> Any:
    """

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
