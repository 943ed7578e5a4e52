"""Read the records: values over the seeds, row counts and sources, or the reason why a value is missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from paper.jobs import Selection, jobs
from paper.report.formatting import listed
from paper.spec import ANYWHERE, Job, Side, Spec, Table, parse_score
from paper.store import Store, fingerprint
from paper.verdict import value_of

NOT_YET = "not measured yet"
MAX_MESSAGE = 160  # characters of an error message
CHANGED = "measured before its settings were changed"


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: a method on a data set in one score, such as ``nearest_neighbor#10000``."""

    data: str
    method: str
    score: str
    panel: str = ANYWHERE


@dataclass(frozen=True)
class Reading:
    """Values by seed, their current records, and remarks on what is missing and why."""

    values: dict[int, float]
    planned: int = 0
    in_sample: bool = False
    remarks: tuple[str, ...] = ()
    records: tuple[dict[str, Any], ...] = ()
    files: tuple[str, ...] = ()

    @property
    def mean(self) -> float | None:
        return fmean(self.values.values()) if self.values else None

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; NaN for a single seed."""
        return stdev(self.values.values()) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class CellReader:
    """Reads the cells of tables from the store."""

    spec: Spec
    store: Store

    def read(self, table: Table, cell: TableCell) -> Reading:
        """Read one cell."""
        reason = table.reason(cell.data, cell.method, cell.panel)
        if reason is not None:
            return Reading({}, remarks=(reason,))
        seeds = self.seeds(table, cell)
        found = [self._one(cell, seed) for seed in seeds]
        remarks: dict[str, list[int]] = {}
        for seed, (_, _, remark) in zip(seeds, found, strict=True):
            if remark:
                known = table.reason_without_data(cell.data, cell.method, cell.panel) if remark == NOT_YET else None
                remarks.setdefault(known or remark, []).append(seed)
        records = tuple(record for _, record, _ in found if record is not None)
        return Reading(
            values={seed: value for seed, (value, _, _) in zip(seeds, found, strict=True) if value is not None},
            planned=len(seeds),
            in_sample=any(record.get("in_sample", False) for record in records),
            remarks=tuple(_for_seeds(remark, which, len(seeds)) for remark, which in remarks.items()),
            records=records,
            files=tuple(self.store.path(self.job(cell, seed)).name for seed in seeds),
        )

    def seeds(self, table: Table, cell: TableCell) -> tuple[int, ...]:
        """Return the seeds of the table and of the claims: everything measured is shown."""
        asked_for = self._seeds_of_runs.get((cell.data, self.spec.methods[cell.method].run, cell.panel), set())
        return tuple(sorted(asked_for.union(table.seeds_for(cell.method))))

    @cached_property
    def _seeds_of_runs(self) -> dict[tuple[str, str, str], set[int]]:
        found: dict[tuple[str, str, str], set[int]] = {}
        for job in jobs(self.spec, Selection()):
            found.setdefault((job.data, job.run, job.panel), set()).add(job.seed)
        return found

    def record(self, job: Job) -> tuple[dict[str, Any] | None, str]:
        """Return the current record of a job and "", or None and the reason why there is none."""
        found = self.store.find(job)
        if found is None:
            return None, NOT_YET
        if "failed" in found:
            return None, failure(found)
        return (found, "") if found["plan"] == fingerprint(job, self.spec) else (None, CHANGED)

    def job(self, cell: TableCell, seed: int) -> Job:
        """Return the job behind a cell."""
        return Job(cell.data, self.spec.methods[cell.method].run, seed, cell.panel)

    def _one(self, cell: TableCell, seed: int) -> tuple[float | None, dict[str, Any] | None, str]:
        """Return the value of a seed, its record, and a remark."""
        record, missing = self.record(self.job(cell, seed))
        if record is None:
            return None, None, missing
        score, prefix = parse_score(cell.score)
        value = value_of(self.store, self.spec, Side(cell.method, cell.data, prefix), score, seed=seed, panel=cell.panel)
        if value is None or not math.isfinite(value):
            embeds_none = score == "transform_seconds" and record["in_sample"]
            return None, record, "can't embed new rows" if embeds_none else "its record has no such score"
        return value, record, ""

    def reason(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Return why a table does not run a cell, or can't without the data."""
        tables = [table for table in self.spec.tables if data in table.data and method in table.methods]
        reasons = [reason(data, method, panel) for table in tables for reason in (table.reason, table.reason_without_data)]
        return next((reason for reason in reasons if reason is not None), None)

    def is_parametric(self, method: str) -> bool:
        """Return whether a method learns a function that embeds new rows."""
        return self.spec.methods[method].parametric


def failure(record: dict[str, Any]) -> str:
    """Return the first line of an error.

    >>> failure({"failed": "MemoryError: too much\\nmore about it"})
    'failed: MemoryError: too much'
    """
    first = (str(record["failed"]).splitlines() or ["without a message"])[0]
    return f"failed: {first if len(first) <= MAX_MESSAGE else first[:MAX_MESSAGE] + '…'}"


def published(table: Table, cell: TableCell) -> float | None:
    """Return the published value of a cell; the paper may have fewer scores."""
    values = table.published.get(cell.data, {}).get(cell.method, [])
    index = table.scores.index(cell.score)
    return values[index] if index < len(values) else None


def _for_seeds(remark: str, seeds: list[int], of: int) -> str:
    return remark if len(seeds) == of else f"seed {', '.join(map(str, seeds))}: {remark}"


@dataclass(frozen=True)
class RowCounts:
    """Numbers of training and test rows behind a value."""

    rows: int | None  # None if all methods were fitted to the test rows
    test_rows: int


def usual_counts(records: Iterable[dict[str, Any]]) -> RowCounts | None:
    """Return the most frequent row counts of records, the larger of two equally frequent ones."""
    found = list(records)
    if not found:
        return None
    learned = [record["rows"] for record in found if not _fitted_to_test_rows(record)]
    return RowCounts(_most_frequent(learned) if learned else None, _most_frequent([record["test_rows"] for record in found]))


def departures(records: Iterable[dict[str, Any]], expected: RowCounts | None, score: str) -> list[str]:
    """Describe records with other row counts than expected, if the score depends on them.

    >>> few = {"rows": 50, "test_rows": 100, "in_sample": False}
    >>> departures([few], RowCounts(50, 1000), "nearest_neighbor")
    ['on the first 100 test rows, the others on 1,000']
    >>> departures([few], RowCounts(50, 1000), "nearest_neighbor#100"), departures([few], RowCounts(50, 100), "fit_seconds")
    ([], [])
    """
    if expected is None:
        return []
    name, prefix = parse_score(score)
    notes = []
    for record in records:
        if expected.rows is not None and not _fitted_to_test_rows(record) and record["rows"] != expected.rows:
            notes.append(f"fitted to {record['rows']:,} rows, the others to {expected.rows:,}")
        least = min(prefix or expected.test_rows, expected.test_rows)
        same = record["test_rows"] >= least if prefix else record["test_rows"] == expected.test_rows
        if name != "fit_seconds" and not same:
            first = "the first " if record["test_rows"] < expected.test_rows else ""
            notes.append(f"on {first}{record['test_rows']:,} test rows, the others on {least:,}")
    return list(dict.fromkeys(notes))


def _fitted_to_test_rows(record: dict[str, Any]) -> bool:
    """In-sample methods are, unless times are compared."""
    return bool(record["in_sample"]) and not record["job"]["panel"]


def _most_frequent(counts: list[int]) -> int:
    return max(set(counts), key=lambda count: (counts.count(count), count))


@dataclass(frozen=True)
class Sources:
    """Counts, dates, machines and versions of all records."""

    count: int
    failed: int
    planned: int  # jobs of the spec on any machine
    done: int
    days: str
    machines: tuple[str, ...]
    versions: tuple[str, ...]


def sources(reader: CellReader) -> Sources:
    found = list(reader.store.all())
    wanted = jobs(reader.spec, Selection())
    days = sorted({record["date"][:10] for record in found if "date" in record})
    return Sources(
        count=len(found),
        failed=sum("failed" in record for record in found),
        planned=len(wanted),
        done=sum(reader.store.is_done(job, reader.spec) for job in wanted),
        days=f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days),
        machines=_counted(machine_name(record) for record in found if "machine" in record),
        versions=_versions(found),
    )


def machine_name(record: dict[str, Any]) -> str:
    """Name the machine of a record: its GPU or its CPU cores."""
    machine = record["machine"]
    on_gpu = machine["gpu"] is not None and not str(record.get("device", "cuda")).startswith("cpu")
    name = f"{machine['gpu']}, {machine['cpus']} CPU cores" if on_gpu else f"{machine['cpus']} CPU cores"
    return f"{name}, {machine['system']}"


def machines_of(records: Iterable[dict[str, Any]]) -> str:
    """Name all machines of records."""
    return " and on ".join(dict.fromkeys(machine_name(record) for record in records if "machine" in record))


def _counted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name} ({count:,} record{'s' * (count != 1)})" for name, count in Counter(names).most_common())


def _versions(records: list[dict[str, Any]]) -> tuple[str, ...]:
    """Each library with the versions that the records name."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        for library, version in record.get("versions", {}).items():
            seen.setdefault(library, {})[version] = None
    return tuple(f"{library} {listed(list(versions))}" for library, versions in seen.items())
