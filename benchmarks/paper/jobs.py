"""What there is to do: the jobs that a selection of tables, figures and claims asks for, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dre.compare.plan import ANYWHERE, Claim, Figure, Job, Table, sides
from dre.compare.plans import Plans
from dre.notation import unknown

DRAWN_SEED = 0  # of the maps in figures


@dataclass(frozen=True)
class Selection:
    """Names to keep; an empty one keeps all."""

    plans: tuple[str, ...] = ()  # of tables, figures and claims; "tables", "figures", "claims" mean all of them
    data: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()

    def of(self, plans: Plans) -> Plans:
        """Only the tables, figures and claims that were asked for."""
        names = {
            "tables": [table.name for table in plans.tables],
            "figures": [figure.name for figure in plans.figures],
            "claims": [claim.name for claim in plans.claims],
        }
        known = [*names, *(name for group in names.values() for name in group)]
        for name in self.plans:
            if name not in known:
                raise ValueError(unknown("table, figure or claim", name, known))

        def wanted(group: str, name: str) -> bool:
            return not self.plans or name in self.plans or group in self.plans

        return replace(
            plans,
            tables=tuple(table for table in plans.tables if wanted("tables", table.name)),
            figures=tuple(figure for figure in plans.figures if wanted("figures", figure.name)),
            claims=tuple(claim for claim in plans.claims if wanted("claims", claim.name)),
        )

    def check(self, plans: Plans) -> None:
        """What is named must be there."""
        panels = {panel for table in plans.tables for panel in table.panels} | {ANYWHERE}
        pairs = (("data", self.data, plans.data), ("method", self.methods, plans.methods), ("panel", self.panels, panels))
        for what, names, known in pairs:
            for name in names:
                if name not in known:
                    raise ValueError(unknown(what, name, sorted(filter(None, known))))

    def keeps(self, data: str, method: str, panel: str) -> bool:
        pairs = ((self.data, data), (self.methods, method), (self.panels, panel))
        return all(not names or name in names for names, name in pairs)


def jobs(plans: Plans, selection: Selection) -> list[Job]:
    """In the order of the plans, without repetition; runs that serve several methods are one job."""
    chosen = selection.of(plans)
    selection.check(plans)
    wanted: Iterable[tuple[Job, str]] = (
        *(pair for table in chosen.tables for pair in _of_table(plans, table)),
        *(pair for figure in chosen.figures for pair in _of_figure(plans, figure)),
        *(pair for claim in chosen.claims for pair in _of_claim(plans, claim)),
    )
    reasoned = {place for table in plans.tables for place in _not_run(table)}
    kept = [
        job
        for job, method in wanted
        if selection.keeps(job.data, method, job.panel) and (job.data, method, job.panel) not in reasoned
    ]
    return list(dict.fromkeys(kept))


def _of_table(plans: Plans, table: Table) -> Iterator[tuple[Job, str]]:
    for panel in table.panels:
        for data in table.data:
            for method in table.methods:
                if table.reason(data, method, panel) is None:
                    for seed in table.seeds_for(method):
                        yield Job(data, plans.methods[method].run, seed, panel), method


def _not_run(table: Table) -> Iterator[tuple[str, str, str]]:
    """What a table gives a reason for is not run for a figure or a claim either."""
    for panel in table.panels:
        for data in table.data:
            for method in table.methods:
                if table.reason(data, method, panel) is not None:
                    yield data, method, panel


def _of_figure(plans: Plans, figure: Figure) -> Iterator[tuple[Job, str]]:
    for row in figure.rows:
        for method in row.methods:
            yield Job(row.data, plans.methods[method].run, DRAWN_SEED, ANYWHERE), method


def _of_claim(plans: Plans, claim: Claim) -> Iterator[tuple[Job, str]]:
    for comparison in claim.comparisons:
        for side in sides(comparison):
            for seed in range(claim.seeds):
                yield Job(side.data, plans.methods[side.method].run, seed, comparison.panel), side.method


def drawn_maps(plans: Plans, job: Job, stages: int) -> set[str]:
    """The maps of a job that a figure shows, as "test-2": large ones are kept for nothing else."""
    wanted = set()
    for row in (row for figure in plans.figures for row in figure.rows):
        for method in (plans.methods[name] for name in row.methods):
            if Job(row.data, method.run, DRAWN_SEED) == job:
                wanted.add(f"{row.part}-{stages - 1 if method.stage is None else method.stage}")
    return wanted


def stages_wanted(job: Job, plans: Plans, count: int) -> list[int]:
    """Those that are scored: all; where there are so many test rows that only 1-NN is, those that something shows."""
    if plans.data[job.data].scores == "all":
        return list(range(count))
    shown = {
        plans.methods[name].stage
        for table in plans.tables
        if job.data in table.data
        for name in table.methods
        if plans.methods[name].run == job.run
    }
    shown |= {
        plans.methods[name].stage
        for figure in plans.figures
        for row in figure.rows
        for name in row.methods
        if (row.data, plans.methods[name].run) == (job.data, job.run)
    }
    shown |= {
        plans.methods[side.method].stage
        for claim in plans.claims
        for comparison in claim.comparisons
        for side in sides(comparison)
        if (side.data, plans.methods[side.method].run) == (job.data, job.run)
    }
    return sorted({stage for stage in shown if stage is not None} | {count - 1})


def command(job: Job, plans: Plans) -> str:
    """What measures this cell again."""
    methods = [name for name, method in plans.methods.items() if method.run == job.run]
    method = job.run if job.run in methods else methods[0]
    panel = f" --panels {job.panel}" if job.panel else ""
    return f"dre bench --only-data {job.data} --only-methods {method}{panel}"
