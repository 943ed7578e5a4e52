"""The report, read off the records: ours beside the published values, a verdict on each claim, and the pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dre.compare.cells import Cells
from dre.compare.plans import Plans
from paper.report.blocks import Page
from paper.report.claims import INTERVALS, VERDICTS, Judged, counted, judged
from paper.report.installed import check_installed
from paper.report.levels import Levels, levels_of_tables, published_maps
from paper.report.notes import Remarks, remarks
from paper.report.pictures import Picture, pictures
from paper.report.reading import Reader
from paper.report.rendering import as_markdown, as_page
from paper.report.sources import Sources, sources
from paper.report.summary import Summary, summary
from paper.report.tables import page

__all__ = ["Report", "check_installed", "read_report", "write_report"]


@dataclass(frozen=True)
class Report:
    """All that is shown, as texts and shades: the templates only lay it out."""

    quick: bool
    sources: Sources
    summary: Summary
    claims: tuple[Judged, ...]
    tables: tuple[Page, ...]
    levels: tuple[Levels, ...]
    published_maps: Levels | None
    pictures: tuple[Picture, ...]
    remarks: Remarks
    records: str  # where they are, as seen from the report
    about_claims: tuple[str, ...] = (VERDICTS, INTERVALS)

    @property
    def verdicts(self) -> str:
        return counted([each.verdict for each in self.claims])


def read_report(plans: Plans, cells: Cells, folder: Path, *, figures: dict[str, Path], quick: bool) -> Report:
    """Works with whatever records there are; what is missing is said in its place."""
    reader = Reader(plans, cells)
    return Report(
        quick=quick,
        sources=sources(reader),
        summary=summary(reader, against_paper=not quick),
        claims=tuple(judged(claim, reader) for claim in plans.claims),
        tables=tuple(page(table, reader) for table in plans.tables),
        levels=tuple(levels_of_tables(reader)),
        published_maps=published_maps(cells.records.parent),
        pictures=tuple(pictures(figures, plans)),
        remarks=remarks(),
        records=Path(os.path.relpath(cells.records, folder)).as_posix(),
    )


def write_report(plans: Plans, cells: Cells, folder: Path, *, figures: dict[str, Path], quick: bool = False) -> list[Path]:
    """Write ``report.md`` and ``report.html`` into a folder; the page is one file that needs nothing else.

    ``figures``: the pictures by the names of their plans. ``quick`` says that the records are of a quick run.
    """
    report = read_report(plans, cells, folder, figures=figures, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    written = {"report.md": as_markdown(report, folder), "report.html": as_page(report)}
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in written]
