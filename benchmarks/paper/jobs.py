"""Jobs: the fits that a selection of tables, figures and claims needs, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dre.notation import unknown
from paper.spec import ANYWHERE, Claim, Figure, Job, Spec, Table, sides

FIGURE_SEED = 0  # seed of the embeddings in figures
NO_PANEL = "none"  # ANYWHERE on the command line


@dataclass(frozen=True)
class Selection:
    """Names to keep; empty keeps all."""

    parts: tuple[str, ...] = ()  # tables, figures and claims; "tables", "figures", "claims" mean all of a kind
    data: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()

    def apply(self, spec: Spec) -> Spec:
        """Return the spec with the selected tables, figures and claims only."""
        names = {
            "tables": [table.name for table in spec.tables],
            "figures": [figure.name for figure in spec.figures],
            "claims": [claim.name for claim in spec.claims],
        }
        known = [*names, *(name for group in names.values() for name in group)]
        for name in self.parts:
            if name not in known:
                raise ValueError(unknown("table, figure or claim", name, known))

        def is_selected(group: str, name: str) -> bool:
            return not self.parts or name in self.parts or group in self.parts

        return replace(
            spec,
            tables=tuple(table for table in spec.tables if is_selected("tables", table.name)),
            figures=tuple(figure for figure in spec.figures if is_selected("figures", figure.name)),
            claims=tuple(claim for claim in spec.claims if is_selected("claims", claim.name)),
        )

    def check(self, spec: Spec) -> None:
        """Raise ``ValueError`` for an unknown data set, method or panel."""
        panels = {panel for table in spec.tables for panel in table.panels} | {ANYWHERE}
        pairs = (("data", self.data, spec.data), ("method", self.methods, spec.methods), ("panel", self.panels, panels))
        for kind, names, known in pairs:
            for name in names:
                if name not in known:
                    raise ValueError(unknown(kind, name, sorted(filter(None, known))))

    def keeps(self, data: str, method: str, panel: str) -> bool:
        """Return whether a cell is selected."""
        pairs = ((self.data, data), (self.methods, method), (self.panels, panel))
        return all(not names or name in names for names, name in pairs)


def jobs(spec: Spec, selection: Selection) -> list[Job]:
    """Return the selected jobs in the order of the spec; a run that serves several methods is one job."""
    chosen = selection.apply(spec)
    selection.check(spec)
    wanted: Iterable[tuple[Job, str]] = (
        *(pair for table in chosen.tables for pair in _table_jobs(spec, table)),
        *(pair for figure in chosen.figures for pair in _figure_jobs(spec, figure)),
        *(pair for claim in chosen.claims for pair in _claim_jobs(spec, claim)),
    )
    excluded = {cell for table in spec.tables for cell in _cells_not_run(table)}
    kept = [
        job
        for job, method in wanted
        if selection.keeps(job.data, method, job.panel) and (job.data, method, job.panel) not in excluded
    ]
    return list(dict.fromkeys(kept))


def selection_errors(spec: Spec, selection: Selection) -> str:
    """Return why a selection matches no job: the first of data, methods and panels that leaves nothing; "" if it matches.

    A figure that needs no measurement has no jobs, which is no error.
    """
    so_far = Selection(selection.parts)
    if jobs(spec, selection) or not jobs(spec, so_far):
        return ""
    panels = dict.fromkeys([ANYWHERE, *(panel for table in spec.tables for panel in table.panels)])
    for part, word, option, known in (
        ("data", "data", "--only-data", spec.data),
        ("methods", "method", "--only-methods", spec.methods),
        ("panels", "panel", "--panels", panels),
    ):
        asked = getattr(selection, part)
        narrowed = replace(so_far, **{part: asked})
        if not jobs(spec, narrowed):
            choices = [name for name in known if jobs(spec, replace(so_far, **{part: (name,)}))]
            return (
                f"nothing to run: no cell of {_describe(so_far)} has the {word} {_join(asked, ' or ')}; "
                f"{option} can be {_join(choices, ', ')}"
            )
        so_far = narrowed
    return ""


def _describe(selection: Selection) -> str:
    kinds = (("data", selection.data), ("methods", selection.methods))
    narrowed = "".join(f" with the {kind} {', '.join(names)}" for kind, names in kinds if names)
    return (", ".join(selection.parts) or "the benchmark") + narrowed


def _join(names: Iterable[str], separator: str) -> str:
    return separator.join(NO_PANEL if name == ANYWHERE else name for name in names)


def _table_jobs(spec: Spec, table: Table) -> Iterator[tuple[Job, str]]:
    for panel in table.panels:
        for data in table.data:
            for method in table.methods:
                if table.reason(data, method, panel) is None:
                    for seed in table.seeds_for(method):
                        yield Job(data, spec.methods[method].run, seed, panel), method


def _cells_not_run(table: Table) -> Iterator[tuple[str, str, str]]:
    """Cells that a table does not run; figures and claims do not run them either."""
    for panel in table.panels:
        for data in table.data:
            for method in table.methods:
                if table.reason(data, method, panel) is not None:
                    yield data, method, panel


def _figure_jobs(spec: Spec, figure: Figure) -> Iterator[tuple[Job, str]]:
    for row in figure.rows:
        for method in row.methods:
            yield Job(row.data, spec.methods[method].run, FIGURE_SEED, ANYWHERE), method


def _claim_jobs(spec: Spec, claim: Claim) -> Iterator[tuple[Job, str]]:
    for comparison in claim.comparisons:
        for side in sides(comparison):
            for seed in range(claim.seeds):
                yield Job(side.data, spec.methods[side.method].run, seed, comparison.panel), side.method


def drawn_maps(spec: Spec, job: Job, stages: int) -> set[str]:
    """Return the embeddings of a job that figures show, such as "test-2"; no others are stored."""
    wanted = set()
    for row in (row for figure in spec.figures for row in figure.rows):
        for method in (spec.methods[name] for name in row.methods):
            if Job(row.data, method.run, FIGURE_SEED) == job:
                wanted.add(f"{row.part}-{stages - 1 if method.stage is None else method.stage}")
    return wanted


def scored_stages(job: Job, spec: Spec, count: int) -> list[int]:
    """Return the stages to score: all, or for data with 1-NN scores only those that are shown, and the last."""
    if spec.data[job.data].scores == "all":
        return list(range(count))
    shown: list[tuple[str, str]] = [
        *((data, method) for table in spec.tables for data in table.data for method in table.methods),
        *((row.data, method) for figure in spec.figures for row in figure.rows for method in row.methods),
        *((s.data, s.method) for claim in spec.claims for comparison in claim.comparisons for s in sides(comparison)),
    ]
    methods = [spec.methods[name] for data, name in shown if data == job.data]
    stages = {method.stage for method in methods if method.run == job.run}
    return sorted({stage for stage in stages if stage is not None} | {count - 1})


def command(job: Job, spec: Spec) -> str:
    """Return the command that runs this job."""
    methods = [name for name, method in spec.methods.items() if method.run == job.run]
    method = job.run if job.run in methods else methods[0]
    panel = f" --panels {job.panel}" if job.panel else ""
    quick = " --quick" if spec.is_quick else ""
    data = spec.data[job.data].stand_in_for or job.data
    return f"python benchmarks/bench.py{quick} --only-data {data} --only-methods {method}{panel}"
