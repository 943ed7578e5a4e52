"""``dre bench``: the tables, figures and claims of the paper, measured, and a report on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dre.cli.data import Device
from dre.cli.wrong_use import refusing

QUICK_ROWS, QUICK_TEST_ROWS = 1_600, 400


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", show_default=False, help="Tables, figures and claims, such as table-1, figures; all without."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="All of it on 2,000 rows, with few steps: to see that it works.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="With the data sets; else $DRE_DATA, the cache, a download."),
    ] = None,
    plans: Annotated[Path, typer.Option(metavar="FOLDER", help="That says what is run.")] = Path("benchmarks"),
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Records, maps and report go here, and are measured anew; else to that of the plans, quick: out/bench.",
        ),
    ] = None,
    only_data: Annotated[str, typer.Option(metavar="NAMES", help="Only these data sets of the plans, between commas.")] = "",
    only_methods: Annotated[str, typer.Option(metavar="NAMES", help="Only these methods of the plans, between commas.")] = "",
    panels: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Only the times of gpu or cpu, or none; by default all, and the times of this machine."
        ),
    ] = "",
    device: Device = "auto",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Jobs at a time; those whose times are compared run alone.")
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run.")] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Write the report from the records that are there.")
    ] = False,
) -> None:
    """Measure the tables, figures and claims of the paper again.

    Writes a report on them. What is done already is not done again: stop it when you like, and call it again.

    **Examples:**

    - `dre bench --quick`

    - `dre bench table-1 --only-data mnist`

    - `dre bench claims --workers 4 --out mine`

    - `dre bench --report-only`
    """
    from dre.compare.jobs import Selection
    from dre.datasets.files import OFFLINE
    from paper.benchmark import Benchmark
    from paper.report import check_installed

    check_installed()  # said now, and not after hours
    if quick:
        os.environ.setdefault(OFFLINE, "1")  # what is not at hand is not fetched for a trial: the digits stand in
    chosen = Selection(tuple(names or ()), _split(only_data), _split(only_methods), _split(panels))
    with refusing():
        benchmark = Benchmark.at(plans, out=out, rows=(QUICK_ROWS, QUICK_TEST_ROWS) if quick else None)
        benchmark.wanted(chosen, device)
    folder = None if data is None else str(data)
    failed = []
    if not report_only:
        failed = benchmark.run(chosen, folder=folder, device=device, workers=workers, dry_run=dry_run, say=typer.echo)
    if not dry_run:
        shown = chosen if quick or out is not None else Selection()  # the report in PLANS is always of all that is there
        for path in benchmark.write_report(shown, folder=folder):
            typer.echo(f"wrote {path}")
    if failed:
        typer.echo(f"{len(failed)} of the cells failed; the next run tries them again", err=True)
        raise typer.Exit(1)


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
