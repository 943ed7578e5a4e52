"""Reads the page of a report back: its sections, tables, cells and notes, and everything that it refers to."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from paper.report import write_report
from paper.spec import Spec
from paper.store import Store

EMPTY = ("meta", "br", "img", "link", "input", "hr")


@dataclass
class Cell:
    text: str = ""
    classes: tuple[str, ...] = ()
    title: str = ""
    notes: str = ""  # what stands in its <sup>


@dataclass
class Table:
    section: str
    heading: str
    folded: bool = False  # inside <details>
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, title: str) -> list[Cell]:
        """Of a method: its cells without the title."""
        return next(row[1:] for row in self.rows if row[0].text.removesuffix(" in-sample") == title)

    def heads(self) -> list[str]:
        return [cell.text for row in self.rows for cell in row if "head" in cell.classes]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self._section = self._heading = ""
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def of(self, section: str) -> list[Table]:
        return [table for table in self.tables if table.section == section]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.references += [known[name] for name in ("src", "href", "srcset", "action", "data", "poster") if name in known]
        if tag not in EMPTY:
            self.open.append((tag, known))
        if tag == "section":
            self._section, self._heading = known["id"], ""
        elif tag in ("h2", "h3"):
            self._heading = ""
        elif tag == "table":
            folded = any(tag == "details" and "open" not in known for tag, known in self.open)
            self.tables.append(Table(self._section, self._heading, folded))
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            classes = tuple(known.get("class", "").split()) + (("head",) if known.get("scope") == "col" else ())
            self.tables[-1].rows[-1].append(Cell(classes=classes, title=known.get("title", "")))
        elif tag == "li" and self._inside("notes"):
            self.tables[-1].notes.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        names = [tag for tag, _ in self.open]
        if not names or names[-1] == "style":
            return
        self.texts.append(data)
        text = " ".join(data.split())
        if names[-1] in ("h2", "h3"):
            self._heading += text
        elif "sup" in names:
            self.tables[-1].rows[-1][-1].notes += text
        elif "td" in names or "th" in names:
            cell = self.tables[-1].rows[-1][-1]
            cell.text = f"{cell.text} {text}".strip()
        elif "li" in names and self._inside("notes"):
            self.tables[-1].notes[-1] += text

    def _inside(self, kind: str) -> bool:
        return any(kind in known.get("class", "").split() for _, known in self.open)


@dataclass(frozen=True)
class Written:
    """A report that was written into a folder, and read back."""

    folder: Path
    store: Store
    page: Page
    html: str
    markdown: str


def written(spec: Spec, store: Store, folder: Path, *, figures: dict[str, Path] | None = None, quick: bool = False) -> Written:
    paths = write_report(spec, store, folder, figures=figures or {}, quick=quick)
    assert [path.name for path in paths] == ["report.md", "report.html"]
    html = (folder / "report.html").read_text()
    return Written(folder, store, Page(html), html, (folder / "report.md").read_text())
