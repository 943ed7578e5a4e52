"""Measure the paper's tables, figures and claims, and write a report on them.

python benchmarks/bench.py                                   everything; resumes where it stopped
python benchmarks/bench.py --quick                           everything on 2,000 rows, in minutes
python benchmarks/bench.py table-1 --only-data mnist         a part of it
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dre.datasets.files import OFFLINE
from paper.benchmark import Benchmark
from paper.jobs import Selection
from paper.report import check_installed

QUICK_ROWS, QUICK_TEST_ROWS = 1_600, 400
USAGE_ERROR, INTERRUPTED = 2, 130  # exit codes; 130 is what shells give for Ctrl-C
HERE = Path(__file__).parent


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            show_default=False,
            help="Tables, figures and claims, such as table-1 or figures; default: all.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run everything on 2,000 rows with few steps, to see that it works. Data that are not here are replaced by "
            "scikit-learn's digits, and are called so.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of the data sets. Default: $DRE_DATA, then the cache, then a download."),
    ] = None,
    spec: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the TOML files.", show_default=False)] = HERE,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of records, embeddings and report. Results elsewhere are ignored. "
            "Default: the folder of the TOML files; for quick runs out/bench/quick.",
        ),
    ] = None,
    only_data: Annotated[str, typer.Option(metavar="NAMES", help="Only these data sets, separated by commas.")] = "",
    only_methods: Annotated[str, typer.Option(metavar="NAMES", help="Only these methods, separated by commas.")] = "",
    panels: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only the times of gpu or cpu, or none of them. Default: all cells, and the times of this machine.",
        ),
    ] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Jobs at a time. Jobs whose times are compared run alone.")
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the jobs without running them.")] = False,
    report_only: Annotated[bool, typer.Option("--report-only", help="Only write the report, from existing records.")] = False,
) -> None:
    """Measure the paper's tables, figures and claims, and write a report on them.

    Finished cells are not measured again: stop it at any time and start it again.
    """
    check_installed()  # now rather than after hours
    if quick:
        os.environ.setdefault(OFFLINE, "1")  # a trial downloads nothing: digits take the place of missing data
    chosen = Selection(tuple(names or ()), _split(only_data), _split(only_methods), _split(panels))
    try:
        benchmark = Benchmark.at(spec, out=out, rows=(QUICK_ROWS, QUICK_TEST_ROWS) if quick else None)
        benchmark.select(chosen, device)
    except ValueError as problem:
        typer.echo(f"bench: {problem}", err=True)
        raise typer.Exit(USAGE_ERROR) from problem
    folder = None if data is None else str(data)
    if quick:
        benchmark, chosen = benchmark.with_stand_ins(chosen, folder)
        if benchmark.stand_ins:
            missing = ", ".join(benchmark.stand_ins)
            typer.echo(f"scikit-learn's digits, as digits-for-NAME, are in place of data that are not here: {missing}")
    failed = []
    if not report_only:
        failed = benchmark.run(chosen, folder=folder, device=device, workers=workers, dry_run=dry_run, log=typer.echo)
    if not dry_run:
        shown = chosen if quick or out is not None else Selection()  # the committed report always has everything
        for path in benchmark.write_report(shown, folder=folder):
            typer.echo(f"wrote {path}")
    if failed:
        typer.echo(f"{len(failed)} cells failed; the next run tries them again", err=True)
        raise typer.Exit(1)


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(bench)
    try:
        app(standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
