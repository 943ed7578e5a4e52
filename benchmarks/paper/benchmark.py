"""All of it together: plans, where records and maps are kept, the run, and the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dre.compare.cells import Cells
from dre.compare.jobs import Selection, jobs
from dre.compare.plan import ANYWHERE, Data, Job
from dre.compare.plans import Plans
from dre.datasets import Dataset
from dre.runtime import resolve_device
from paper.loading import loaded
from paper.runner import Outcome, Setting, carry_out, pending, watched
from paper.unmatched import NO_PANEL, check_matches

MADE = Path("out/bench")  # maps, which are too large to keep with the project, and all of a quick run


@dataclass(frozen=True)
class Benchmark:
    plans: Plans
    cells: Cells
    report: Path
    quick: bool = False

    @classmethod
    def at(cls, folder: Path, *, out: Path | None = None, rows: tuple[int, int] | None = None) -> Benchmark:
        """The plans of a folder, with its records and its report; or all that is made in ``out``.

        ``rows``, of training and test, makes it a quick one, whose records are kept apart.
        """
        plans = Plans.read(folder)
        if rows is not None:
            plans, out = plans.quick(*rows), out or MADE / "quick"
        if out is None:
            return cls(plans, Cells(folder / "results" / "cells", MADE / "maps"), folder / "report")
        return cls(plans, Cells(out / "cells", out / "maps"), out / "report", quick=rows is not None)

    def wanted(self, selection: Selection, device: str = "auto") -> list[Job]:
        """What is selected, done or not; a part of the selection that nothing matches is an error."""
        chosen = _with_panels(selection, device)
        found = jobs(self.plans, chosen)
        check_matches(self.plans, chosen)
        return found

    def run(
        self,
        selection: Selection,
        *,
        folder: str | None = None,
        device: str = "auto",
        workers: int = 1,
        dry_run: bool = False,
        say: Callable[[str], None] = print,
    ) -> list[Outcome]:
        """Carry out what is not done yet; gives what failed."""
        wanted = self.wanted(selection, device)
        setting = Setting(self.plans, self.cells, folder, device, workers, stand_in=self.quick)
        left = pending(wanted, setting)
        say(f"{len(wanted)} cells, {len(wanted) - len(left)} of them done")
        if dry_run:
            for job in left:
                say(str(job))
            return []
        return watched(carry_out(left, setting), len(left), say)

    def write_report(self, selection: Selection, *, folder: str | None = None) -> list[Path]:
        """The figures that can be drawn from the maps on this machine, and the report as Markdown and as a page."""
        from dre.datasets.tasic2018 import reference_maps
        from paper.drawings import draw_networks, draw_schematic
        from paper.figures import draw_all, save
        from paper.report import write_report

        def load(plan: Data) -> Dataset:
            return loaded(plan, folder, stand_in=self.quick)

        chosen = selection.of(self.plans)
        shown = self.report / "figures"
        pictures = {
            "figure-1": save(draw_networks(), shown / "figure-1.png"),
            "figure-2": save(draw_schematic(), shown / "figure-2.png"),
            **draw_all(chosen, self.cells, load, shown, cells_maps=lambda: reference_maps(folder)),
        }
        return write_report(chosen, self.cells, self.report, figures=pictures, quick=self.quick)


def _with_panels(selection: Selection, device: str) -> Selection:
    """The times of this kind of machine, where none was named."""
    if NO_PANEL in selection.panels:
        return replace(selection, panels=(ANYWHERE,))
    if "gpu" in selection.panels:
        resolve_device("cuda")  # an error where there is none
    if selection.panels:
        return selection
    return replace(selection, panels=(ANYWHERE, "gpu" if resolve_device(device).type == "cuda" else "cpu"))
