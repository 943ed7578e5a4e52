"""What a cell of a table holds: the mean over the seeds of what was measured, or the reason why there is nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from dre.compare.cells import Cells, planned
from dre.compare.jobs import Selection, jobs
from dre.compare.plan import ANYWHERE, Job, Side, Table
from dre.compare.plans import Plans
from paper.verdict import value_of

NOT_YET = "not measured yet"
LONGEST = 160  # characters of an error's message
CHANGED = "measured before the plan was changed"


@dataclass(frozen=True)
class Place:
    """Which cell: a method on data in one score, such as ``nearest_neighbor#10000`` for that of the first 10,000 test rows."""

    data: str
    method: str
    score: str
    panel: str = ANYWHERE


@dataclass(frozen=True)
class Reading:
    """``values`` by seed; ``records`` are those measured as it is planned now. ``remarks`` say what is missing, and why."""

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
        """The standard deviation over the seeds; nan of one."""
        return stdev(self.values.values()) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class Reader:
    """Reads cells as a table asks for them."""

    plans: Plans
    cells: Cells

    def read(self, table: Table, place: Place) -> Reading:
        reason = table.reason(place.data, place.method, place.panel)
        if reason is not None:
            return Reading({}, remarks=(reason,))
        seeds = self.seeds(table, place)
        found = [self._one(place, seed) for seed in seeds]
        remarks: dict[str, list[int]] = {}
        for seed, (_, _, remark) in zip(seeds, found, strict=True):
            if remark:
                known = table.reason_without_data(place.data, place.method, place.panel) if remark == NOT_YET else None
                remarks.setdefault(known or remark, []).append(seed)
        records = tuple(record for _, record, _ in found if record is not None)
        return Reading(
            values={seed: value for seed, (value, _, _) in zip(seeds, found, strict=True) if value is not None},
            planned=len(seeds),
            in_sample=any(record.get("in_sample", False) for record in records),
            remarks=tuple(_of_seeds(remark, which, len(seeds)) for remark, which in remarks.items()),
            records=records,
            files=tuple(self.cells.path(self.job(place, seed)).name for seed in seeds),
        )

    def seeds(self, table: Table, place: Place) -> tuple[int, ...]:
        """Those of the table, and those that a claim asks for: what is measured is shown, not a part of it."""
        asked_for = self._seeds_of_runs.get((place.data, self.plans.methods[place.method].run, place.panel), set())
        return tuple(sorted(asked_for.union(table.seeds_for(place.method))))

    @cached_property
    def _seeds_of_runs(self) -> dict[tuple[str, str, str], set[int]]:
        found: dict[tuple[str, str, str], set[int]] = {}
        for job in jobs(self.plans, Selection()):
            found.setdefault((job.data, job.run, job.panel), set()).add(job.seed)
        return found

    def record(self, job: Job) -> tuple[dict[str, Any] | None, str]:
        """What was measured as it is planned now; where there is nothing, the reason."""
        found = self.cells.find(job)
        if found is None:
            return None, NOT_YET
        if "failed" in found:
            return None, failure(found)
        return (found, "") if found["plan"] == planned(job, self.plans) else (None, CHANGED)

    def job(self, place: Place, seed: int) -> Job:
        return Job(place.data, self.plans.methods[place.method].run, seed, place.panel)

    def _one(self, place: Place, seed: int) -> tuple[float | None, dict[str, Any] | None, str]:
        """The value of a seed, its record, and what is to be said about it."""
        record, missing = self.record(self.job(place, seed))
        if record is None:
            return None, None, missing
        score, prefix = split_score(place.score)
        value = value_of(self.cells, self.plans, Side(place.method, place.data, prefix), score, seed=seed, panel=place.panel)
        if value is None or not math.isfinite(value):
            embeds_none = score == "transform_seconds" and record["in_sample"]
            return None, record, "embeds no new rows" if embeds_none else "its record has no such score"
        return value, record, ""

    def reason(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Why some table does not run it, or can't for want of data."""
        tables = [table for table in self.plans.tables if data in table.data and method in table.methods]
        reasons = [reason(data, method, panel) for table in tables for reason in (table.reason, table.reason_without_data)]
        return next((reason for reason in reasons if reason is not None), None)

    def is_parametric(self, method: str) -> bool:
        """Whether it learns a function, as the plans tell."""
        return self.plans.methods[method].parametric


def split_score(text: str) -> tuple[str, int | None]:
    """

    >>> split_score("nearest_neighbor#10000"), split_score("continuity")
    (('nearest_neighbor', 10000), ('continuity', None))
    """
    score, _, prefix = text.partition("#")
    return score, int(prefix) if prefix else None


def failure(record: dict[str, Any]) -> str:
    """What went wrong, in a line.

    >>> failure({"failed": "MemoryError: too much\\nmore about it"})
    'failed: MemoryError: too much'
    """
    first = (str(record["failed"]).splitlines() or ["without a message"])[0]
    return f"failed: {first if len(first) <= LONGEST else first[:LONGEST] + '…'}"


def published(table: Table, place: Place) -> float | None:
    """What the paper has there; its rows may be shorter than ours."""
    values = table.published.get(place.data, {}).get(place.method, [])
    index = table.scores.index(place.score)
    return values[index] if index < len(values) else None


def _of_seeds(remark: str, seeds: list[int], of: int) -> str:
    return remark if len(seeds) == of else f"seed {', '.join(map(str, seeds))}: {remark}"
