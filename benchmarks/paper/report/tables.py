"""Tables as they are shown: ours, the published value and the difference side by side, and no empty cell without a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dre.compare.plan import Table
from paper.report import extent, shades, wording
from paper.report.blocks import Block, Column, Entry, Line, Notes, Page, Shown
from paper.report.extent import Extent
from paper.report.reading import Place, Reader, Reading, published
from paper.report.sources import machines_of

NOT_PUBLISHED = "the paper has no value"
TOLERANCE = 0.02  # what may be below the published value before it must be explained


def page(table: Table, reader: Reader) -> Page:
    blocks = []
    for panel in table.panels:
        name = wording.PANELS.get(panel, panel)
        if len(table.scores) == 1:
            blocks.append(_Drawn(table, reader, panel, table.data).block(name))
            continue
        for data in table.data:
            title = reader.plans.data[data].title
            blocks.append(_Drawn(table, reader, panel, (data,)).block(f"{title}, {name}" if name else title))
    return Page(table.name, table.title, " ".join(table.about.split()), tuple(blocks))


class _Drawn:
    """A block in the making."""

    def __init__(self, table: Table, reader: Reader, panel: str, data: tuple[str, ...]) -> None:
        self.table, self.reader, self.panel, self.data = table, reader, panel, data
        self.notes = Notes()
        self.keys = [(name, score) for name in data for score in table.scores]
        self.readings = {
            (method, name, score): reader.read(table, Place(name, method, score, panel))
            for method in table.methods
            for name, score in self.keys
        }
        self.usual = {name: extent.usual(self._records(name)) for name in data}
        known = [value for of_data in table.published.values() for values in of_data.values() for value in values]
        self.paper_digits = wording.decimals(known)
        self.digits = max(3, self.paper_digits)
        self.times = all(wording.is_time(score) for score in table.scores)

    def block(self, title: str) -> Block:
        columns = tuple(self._column(name, score) for name, score in self.keys)
        lines = tuple(self._line(method, columns) for method in self.table.methods)
        return Block(title, self._facts(), columns, lines, tuple(self.notes.texts))

    def _column(self, data: str, score: str) -> Column:
        several = len(self.data) > 1
        title = self.reader.plans.data[data].title if several else wording.score_title(score)
        has_paper = any(self._published(method, data, score) is not None for method in self.table.methods)
        has_difference = has_paper and data not in self.table.not_differenced
        return Column(title, has_paper, has_difference, "ratio" if self.times else "diff.")

    def _line(self, method: str, columns: tuple[Column, ...]) -> Line:
        told = self.reader.plans.methods[method]
        own = [self.readings[method, name, score] for name, score in self.keys]
        in_sample = not self.times and any(reading.in_sample for reading in own)
        entries = tuple(
            self._entry(method, name, score, column) for (name, score), column in zip(self.keys, columns, strict=True)
        )
        return Line(told.title, told.ours, in_sample, _seeds(own), entries)

    def _entry(self, method: str, data: str, score: str, column: Column) -> Entry:
        reading, paper = self.readings[method, data, score], self._published(method, data, score)
        here = self._here(reading, method, data, score)
        if not column.has_paper:
            return Entry(here)
        theirs = self._paper(paper, method, data, score)
        if not column.has_difference:
            return Entry(here, theirs)
        if reading.mean is None or paper is None:
            missing = here.notes if reading.mean is None else theirs.notes
            return Entry(here, theirs, Shown("–", notes=missing))
        return Entry(here, theirs, self._difference(reading.mean, paper))

    def _here(self, reading: Reading, method: str, data: str, score: str) -> Shown:
        other_rows = extent.departures(reading.records, self.usual[data], score)
        notes = tuple(self.notes.number(remark) for remark in (*reading.remarks, *other_rows))
        if reading.mean is None:
            return Shown("–", notes=notes)
        comparable = self._held_out(data, score)
        learned = {name: value for name, value in comparable.items() if self._is_parametric(name, data, score)}
        best = (min if self.table.smaller_is_better else max)(learned.values(), default=math.nan)
        return Shown(
            self._written(reading.mean),
            self._shade(reading.mean, method, data, score),
            f"± {self._written(reading.spread)}" if len(reading.values) > 1 else "",
            _hint(reading, self._written),
            notes,
            best=learned.get(method) == best,
        )

    def _paper(self, value: float | None, method: str, data: str, score: str) -> Shown:
        if value is None:
            return Shown("–", notes=(self.notes.number(NOT_PUBLISHED),))
        shade = None if data in self.table.not_differenced else self._shade(value, method, data, score)
        return Shown(f"{value:,}" if self.times else wording.number(value, self.paper_digits), shade)

    def _shade(self, value: float, method: str, data: str, score: str) -> int | None:
        """Ours and the published values of a column are shaded on one scale; what is in-sample has no shade."""
        comparable = self._held_out(data, score)
        if method not in comparable:
            return None
        among = [*comparable.values(), *self._published_held_out(data, score)]
        return shades.of_value(value, among, smaller_is_better=self.table.smaller_is_better)

    def _difference(self, here: float, paper: float) -> Shown:
        if self.times:
            faster = math.log(paper / here) if here > 0 else 0.0
            return Shown(wording.ratio(here, paper), shades.of_ratio(here, paper), square=shades.square(faster, math.log(2)))
        difference = round(here - paper, self.digits)
        return Shown(
            wording.signed(difference, self.digits),
            shades.of_difference(difference),
            square=shades.square(difference, TOLERANCE),
        )

    def _held_out(self, data: str, score: str) -> dict[str, float]:
        """The means of the column that can be compared with each other."""
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
        return published(self.table, Place(data, method, score, self.panel))

    def _written(self, value: float) -> str:
        return wording.seconds(value) if self.times else wording.number(value, self.digits)

    def _facts(self) -> tuple[str, ...]:
        """What the records say of the data and the machine."""
        rows = [self._rows(name, found) for name, found in self.usual.items() if found is not None]
        machines = machines_of(record for name in self.data for record in self._records(name))
        return (f"{'; '.join(rows)}. Measured on {machines}.",) if rows else ()

    def _rows(self, data: str, found: Extent) -> str:
        planned, told = self.reader.plans.data[data].title, self._records(data)[0]["data"]
        title = told if told.startswith(planned) else planned  # what stands in for the data in a quick run says so
        learned = "" if found.rows is None else f"{found.rows:,} rows to learn from, "
        return f"{title}: {learned}{found.test_rows:,} to be tested on"

    def _records(self, data: str) -> list[dict[str, Any]]:
        own = [self.readings[method, data, score] for method in self.table.methods for score in self.table.scores]
        return [record for reading in own for record in reading.records]


def _seeds(readings: list[Reading]) -> str:
    """

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
