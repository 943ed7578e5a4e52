"""The benchmark as a whole: spec, store, run and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dre.datasets import Dataset
from dre.runtime import resolve_device
from paper.jobs import NO_PANEL, Selection, jobs, selection_errors
from paper.load_spec import load_spec
from paper.loading import is_available, load_data
from paper.runner import Outcome, Setting, pending, report_progress, run_jobs
from paper.spec import ANYWHERE, Data, Job, Spec, sides
from paper.stand_ins import replace_data, replace_selected
from paper.store import Store

OUT = Path("out/bench")  # embeddings, too large to keep with the project, and all output of quick runs


@dataclass(frozen=True)
class Benchmark:
    """A spec with the store of its results and the folder of its report."""

    spec: Spec
    store: Store
    report: Path
    quick: bool = False

    @classmethod
    def at(cls, folder: Path, *, out: Path | None = None, rows: tuple[int, int] | None = None) -> Benchmark:
        """Open the benchmark of a folder; results and report go there, or to ``out``.

        ``rows``, the number of training and test rows, makes it a quick run with its own results.
        """
        spec = load_spec(folder)
        if rows is not None:
            spec, out = spec.quick(*rows), out or OUT / "quick"
        if out is None:
            return cls(spec, Store(folder / "results" / "cells", OUT / "maps"), folder / "report")
        return cls(spec, Store(out / "cells", out / "maps"), out / "report", quick=rows is not None)

    def select(self, selection: Selection, device: str = "auto") -> list[Job]:
        """Return the selected jobs, done or not; raise ``ValueError`` if a part of the selection matches none."""
        chosen = _with_panels(selection, device)
        selected = jobs(self.spec, chosen)
        problem = selection_errors(self.spec, chosen)
        if problem:
            raise ValueError(problem)
        return selected

    def with_stand_ins(self, selection: Selection, folder: str | None) -> tuple[Benchmark, Selection]:
        """Put the digits in place of data that are not there, under names of their own; also return the selection of these."""
        missing = [name for name in _data_of(selection.apply(self.spec)) if not is_available(self.spec.data[name], folder)]
        return replace(self, spec=replace_data(self.spec, missing)), replace_selected(selection, missing)

    @property
    def stand_ins(self) -> list[str]:
        """Names of the data that digits replace."""
        return [data.stand_in_for for data in self.spec.data.values() if data.stand_in_for]

    def run(
        self,
        selection: Selection,
        *,
        folder: str | None = None,
        device: str = "auto",
        workers: int = 1,
        dry_run: bool = False,
        log: Callable[[str], None] = print,
    ) -> list[Outcome]:
        """Run the selected jobs that are not done; return the failed ones."""
        selected = self.select(selection, device)
        setting = Setting(self.spec, self.store, folder, device, workers)
        left = pending(selected, setting)
        log(f"{len(selected)} cells, {len(selected) - len(left)} of them done")
        if dry_run:
            for job in left:
                log(str(job))
            return []
        return report_progress(run_jobs(left, setting), len(left), log)

    def write_report(self, selection: Selection, *, folder: str | None = None) -> list[Path]:
        """Draw the figures whose embeddings are here, and write the report as Markdown and HTML."""
        from dre.datasets.tasic2018 import reference_maps
        from paper.figures import draw_all, save
        from paper.networks import draw_networks
        from paper.report import write_report
        from paper.schematic import draw_schematic

        def load(data: Data) -> Dataset:
            return load_data(data, folder)

        chosen = selection.apply(self.spec)
        shown = self.report / "figures"
        pictures = {
            "figure-1": save(draw_networks(), shown / "figure-1.png"),
            "figure-2": save(draw_schematic(), shown / "figure-2.png"),
            **draw_all(chosen, self.store, load, shown, reference_maps=lambda: reference_maps(folder)),
        }
        return write_report(chosen, self.store, self.report, figures=pictures, quick=self.quick)


def _data_of(spec: Spec) -> list[str]:
    """Return the names of the data of all tables, figures and claims, each once."""
    names = [
        *(name for table in spec.tables for name in table.data),
        *(row.data for figure in spec.figures for row in figure.rows),
        *(side.data for claim in spec.claims for each in claim.comparisons for side in sides(each)),
    ]
    return list(dict.fromkeys(names))


def _with_panels(selection: Selection, device: str) -> Selection:
    """Add the panel of this kind of machine if none is selected."""
    if NO_PANEL in selection.panels:
        return replace(selection, panels=(ANYWHERE,))
    if "gpu" in selection.panels:
        resolve_device("cuda")  # raises without a GPU
    if selection.panels:
        return selection
    return replace(selection, panels=(ANYWHERE, "gpu" if resolve_device(device).type == "cuda" else "cpu"))
