"""The report on the benchmark: measured next to published values, a verdict on each claim, and figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from paper.report.claims import INTERVALS, VERDICTS, ClaimRow, claim_row, counted
from paper.report.reading import CellReader, Sources, sources
from paper.report.rendering import Picture, Remarks, as_markdown, as_page, check_installed, pictures, remarks
from paper.report.summary import Summary, summary
from paper.report.tables import Levels, TableSection, levels_of_tables, published_maps, table_section
from paper.spec import Spec
from paper.store import Store

__all__ = ["Report", "check_installed", "read_report", "write_report"]


@dataclass(frozen=True)
class Report:
    """The content of the report as texts and shades; the templates lay it out."""

    quick: bool
    stand_ins: tuple[str, ...]  # titles of data that a quick run replaced by the digits
    sources: Sources
    summary: Summary
    claims: tuple[ClaimRow, ...]
    tables: tuple[TableSection, ...]
    levels: tuple[Levels, ...]
    published_maps: Levels | None
    pictures: tuple[Picture, ...]
    remarks: Remarks
    records: str  # path of the records as seen from the report
    about_claims: tuple[str, ...] = (VERDICTS, INTERVALS)

    @property
    def verdicts(self) -> str:
        """Count the verdicts of all claims."""
        return counted([each.verdict for each in self.claims])


def read_report(spec: Spec, store: Store, folder: Path, *, figures: dict[str, Path], quick: bool) -> Report:
    """Read the content from the records there are; missing ones are explained in their place."""
    reader = CellReader(spec, store)
    return Report(
        quick=quick,
        stand_ins=tuple(data.title for data in spec.data.values() if data.stand_in_for),
        sources=sources(reader),
        summary=summary(reader, against_paper=not quick),
        claims=tuple(claim_row(claim, reader) for claim in spec.claims),
        tables=tuple(table_section(table, reader) for table in spec.tables),
        levels=tuple(levels_of_tables(reader)),
        published_maps=published_maps(store.records.parent),
        pictures=tuple(pictures(figures, spec)),
        remarks=remarks(),
        records=Path(os.path.relpath(store.records, folder)).as_posix(),
    )


def write_report(spec: Spec, store: Store, folder: Path, *, figures: dict[str, Path], quick: bool = False) -> list[Path]:
    """Write ``report.md`` and the self-contained ``report.html`` into a folder; return their paths.

    ``figures`` are the pictures by name. ``quick`` marks a report on a quick run.
    """
    report = read_report(spec, store, folder, figures=figures, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    written = {"report.md": as_markdown(report, folder), "report.html": as_page(report)}
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in written]
