"""Tables: measured value, published value and difference side by side, and a reason for every empty cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from paper.report import formatting
from paper.report.reading import CellReader, Reading, RowCounts, TableCell, departures, machines_of, published, usual_counts
from paper.spec import Table

NOT_PUBLISHED = "the paper has no value"
TOLERANCE = 0.02  # a value may be so much below the published one without an explanation
PUBLISHED_MAPS = "tasic-maps.json"  # written by benchmarks/tasic_maps.py
ABOUT_LEVELS = "Neighborhood hit on the test rows, k = 7, the point counted among its own neighbors; mean over the seeds."
BY_LEVEL = "neighborhood_hit_by_level"


@dataclass(frozen=True)
class Cell:
    """A cell: its text, shade (0 to 8 or None), and the numbers of its notes."""

    text: str
    shade: int | None = None
    small: str = ""  # standard deviation over the seeds, or a remark
    hint: str = ""  # values and records of the seeds
    notes: tuple[int, ...] = ()
    best: bool = False
    square: str = ""


@dataclass(frozen=True)
class Entry:
    """The measured value, the published value and their difference."""

    here: Cell
    paper: Cell | None = None
    difference: Cell | None = None


@dataclass(frozen=True)
class ColumnHead:
    """A score or a data set: the head of up to three columns."""

    title: str
    has_paper: bool
    has_difference: bool
    compared: str = "diff."

    @property
    def heads(self) -> list[str]:
        return ["here", *(["paper"] if self.has_paper else []), *([self.compared] if self.has_difference else [])]


@dataclass(frozen=True)
class Line:
    """A method."""

    title: str
    is_dre: bool
    in_sample: bool
    seeds: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Block:
    """A part of a table: a panel or a data set, or all data sets if each is one column."""

    title: str
    facts: tuple[str, ...]
    columns: tuple[ColumnHead, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def any_in_sample(self) -> bool:
        return any(line.in_sample for line in self.lines)

    @property
    def any_spread(self) -> bool:
        return any(entry.here.small for line in self.lines for entry in line.entries)


@dataclass(frozen=True)
class TableSection:
    """A table with its title and parts."""

    name: str
    title: str
    about: str
    blocks: tuple[Block, ...]


@dataclass
class Notes:
    """The numbered notes of a block; equal texts share a number."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        """Return the number of a note, which is added if it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def table_section(table: Table, reader: CellReader) -> TableSection:
    """Read and lay out a table."""
    blocks = []
    for panel in table.panels:
        name = formatting.PANELS.get(panel, panel)
        if len(table.scores) == 1:
            blocks.append(_BlockBuilder(table, reader, panel, table.data).block(name))
            continue
        for data in table.data:
            title = reader.spec.data[data].title
            blocks.append(_BlockBuilder(table, reader, panel, (data,)).block(f"{title}, {name}" if name else title))
    return TableSection(table.name, table.title, " ".join(table.about.split()), tuple(blocks))


class _BlockBuilder:
    """Reads and lays out one block."""

    def __init__(self, table: Table, reader: CellReader, panel: str, data: tuple[str, ...]) -> None:
        self.table, self.reader, self.panel, self.data = table, reader, panel, data
        self.notes = Notes()
        self.keys = [(name, score) for name in data for score in table.scores]
        self.readings = {
            (method, name, score): reader.read(table, TableCell(name, method, score, panel))
            for method in table.methods
            for name, score in self.keys
        }
        self.usual = {name: usual_counts(self._records(name)) for name in data}
        known = [value for of_data in table.published.values() for values in of_data.values() for value in values]
        self.paper_digits = formatting.decimals(known)
        self.digits = max(3, self.paper_digits)
        self.times = all(formatting.is_time(score) for score in table.scores)

    def block(self, title: str) -> Block:
        columns = tuple(self._column(name, score) for name, score in self.keys)
        lines = tuple(self._line(method, columns) for method in self.table.methods)
        return Block(title, self._facts(), columns, lines, tuple(self.notes.texts))

    def _column(self, data: str, score: str) -> ColumnHead:
        several = len(self.data) > 1
        title = self.reader.spec.data[data].title if several else formatting.score_title(score)
        has_paper = any(self._published(method, data, score) is not None for method in self.table.methods)
        has_difference = has_paper and data not in self.table.not_differenced
        return ColumnHead(title, has_paper, has_difference, "ratio" if self.times else "diff.")

    def _line(self, method: str, columns: tuple[ColumnHead, ...]) -> Line:
        spec = self.reader.spec.methods[method]
        own = [self.readings[method, name, score] for name, score in self.keys]
        in_sample = not self.times and any(reading.in_sample for reading in own)
        entries = tuple(
            self._entry(method, name, score, column) for (name, score), column in zip(self.keys, columns, strict=True)
        )
        return Line(spec.title, spec.is_dre, in_sample, _seeds(own), entries)

    def _entry(self, method: str, data: str, score: str, column: ColumnHead) -> Entry:
        reading, paper = self.readings[method, data, score], self._published(method, data, score)
        here = self._here(reading, method, data, score)
        if not column.has_paper:
            return Entry(here)
        printed = self._paper(paper, method, data, score)
        if not column.has_difference:
            return Entry(here, printed)
        if reading.mean is None or paper is None:
            missing = here.notes if reading.mean is None else printed.notes
            return Entry(here, printed, Cell("–", notes=missing))
        return Entry(here, printed, self._difference(reading.mean, paper))

    def _here(self, reading: Reading, method: str, data: str, score: str) -> Cell:
        other_rows = departures(reading.records, self.usual[data], score)
        notes = tuple(self.notes.number(remark) for remark in (*reading.remarks, *other_rows))
        if reading.mean is None:
            return Cell("–", notes=notes)
        comparable = self._held_out(data, score)
        learned = {name: value for name, value in comparable.items() if self._is_parametric(name, data, score)}
        best = (min if self.table.smaller_is_better else max)(learned.values(), default=math.nan)
        return Cell(
            self._written(reading.mean),
            self._shade(reading.mean, method, data, score),
            f"± {self._written(reading.spread)}" if len(reading.values) > 1 else "",
            _hint(reading, self._written),
            notes,
            best=learned.get(method) == best,
        )

    def _paper(self, value: float | None, method: str, data: str, score: str) -> Cell:
        if value is None:
            return Cell("–", notes=(self.notes.number(NOT_PUBLISHED),))
        shade = None if data in self.table.not_differenced else self._shade(value, method, data, score)
        return Cell(f"{value:,}" if self.times else formatting.number(value, self.paper_digits), shade)

    def _shade(self, value: float, method: str, data: str, score: str) -> int | None:
        """Shade measured and published values on one scale; in-sample values have no shade."""
        comparable = self._held_out(data, score)
        if method not in comparable:
            return None
        among = [*comparable.values(), *self._published_held_out(data, score)]
        return formatting.shade_of_value(value, among, smaller_is_better=self.table.smaller_is_better)

    def _difference(self, here: float, paper: float) -> Cell:
        if self.times:
            faster = math.log(paper / here) if here > 0 else 0.0
            return Cell(
                formatting.ratio(here, paper),
                formatting.shade_of_ratio(here, paper),
                square=formatting.square(faster, math.log(2)),
            )
        difference = round(here - paper, self.digits)
        return Cell(
            formatting.signed(difference, self.digits),
            formatting.shade_of_difference(difference),
            square=formatting.square(difference, TOLERANCE),
        )

    def _held_out(self, data: str, score: str) -> dict[str, float]:
        """Return the means of a column that are comparable with each other."""
        readings = {method: self.readings[method, data, score] for method in self.table.methods}
        return {
            method: reading.mean
            for method, reading in readings.items()
            if reading.mean is not None and (self.times or not reading.in_sample)
        }

    def _is_parametric(self, method: str, data: str, score: str) -> bool:
        return self.reader.is_parametric(method) and not self.readings[method, data, score].in_sample

    def _published_held_out(self, data: str, score: str) -> list[float]:
        values = [self._published(method, data, score) for method in self._held_out(data, score)]
        return [value for value in values if value is not None and data not in self.table.not_differenced]

    def _published(self, method: str, data: str, score: str) -> float | None:
        return published(self.table, TableCell(data, method, score, self.panel))

    def _written(self, value: float) -> str:
        return formatting.seconds(value) if self.times else formatting.number(value, self.digits)

    def _facts(self) -> tuple[str, ...]:
        """Describe the data and machines of the records."""
        rows = [self._rows(name, found) for name, found in self.usual.items() if found is not None]
        machines = machines_of(record for name in self.data for record in self._records(name))
        return (f"{'; '.join(rows)}. Measured on {machines}.",) if rows else ()

    def _rows(self, data: str, found: RowCounts) -> str:
        title = self.reader.spec.data[data].title
        training = "" if found.rows is None else f"{found.rows:,} training rows, "
        return f"{title}: {training}{found.test_rows:,} test rows"

    def _records(self, data: str) -> list[dict[str, Any]]:
        own = [self.readings[method, data, score] for method in self.table.methods for score in self.table.scores]
        return [record for reading in own for record in reading.records]


def _seeds(readings: list[Reading]) -> str:
    """Format the number of seeds.

    >>> _seeds([Reading({0: .5, 1: .6}, planned=3)]), _seeds([Reading({0: .5}, planned=1)]), _seeds([Reading({}, planned=1)])
    ('2 of 3', '1', '–')
    """
    counts = sorted({len(reading.values) for reading in readings if reading.values})
    if not counts:
        return "–"
    most = max(reading.planned for reading in readings)
    return str(most) if counts == [most] else f"{counts[0]} of {most}"


def _hint(reading: Reading, written: Callable[[float], str]) -> str:
    seeds = ", ".join(f"seed {seed}: {written(value)}" for seed, value in reading.values.items())
    memory = [record["peak_memory_mb"] for record in reading.records if record.get("peak_memory_mb") is not None]
    most = f"; at most {max(memory):,.0f} MB" if memory else ""
    return f"{seeds}{most}; {', '.join(reading.files)}"


@dataclass(frozen=True)
class Levels:
    """Neighborhood hits: a row per method or map, a column per level of labels."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def levels_of_tables(reader: CellReader) -> list[Levels]:
    """Return the hits of each data set with several levels of labels."""
    found: dict[str, Levels] = {}
    for table in reader.spec.tables:
        for data in table.data if "neighborhood_hit" in table.scores else ():
            lines = dict(_level_lines(table, data, reader))
            if lines and data not in found:
                names = list(next(iter(lines.values())))
                rows = tuple((title, *(formatting.number(hits[name]) for name in names)) for title, hits in lines.items())
                found[data] = Levels(reader.spec.data[data].title, ABOUT_LEVELS, ("method", *names), rows)
    return list(found.values())


def _level_lines(table: Table, data: str, reader: CellReader) -> Iterator[tuple[str, dict[str, float]]]:
    for method in table.methods:
        spec = reader.spec.methods[method]
        reading = reader.read(table, TableCell(data, method, "neighborhood_hit"))
        stages = [record["stages"][-1 if spec.stage is None else spec.stage] for record in reading.records]
        hits = [stage["scores"][BY_LEVEL] for stage in stages if BY_LEVEL in stage.get("scores", {})]
        if hits:
            title = f"{spec.title} (in-sample)" if reading.in_sample else spec.title
            yield title, {name: fmean(each[name] for each in hits) for name in hits[0]}


def published_maps(folder: Path) -> Levels | None:
    """Return the hits of published maps of the RNA-Seq cells, if they were measured."""
    path = folder / PUBLISHED_MAPS
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    results: dict[str, dict[str, float]] = content["results"]
    names = list(next(iter(results.values())))
    rows = tuple((name, *(formatting.number(hits[level]) for level in names)) for name, hits in results.items())
    about = f"Neighborhood hit as above, of maps that other authors published; {content['command']}."
    return Levels("Published maps of the RNA-Seq cells", about, ("map", *names), rows)
