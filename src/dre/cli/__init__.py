"""The command line: ``dre``, one file per command."""

from __future__ import annotations

import sys


def main() -> None:
    """What the command ``dre`` calls. An error that has a remedy is two lines; --debug shows where it came from."""
    import os

    import typer

    from dre.cli.bench import bench
    from dre.cli.compare import compare
    from dre.cli.fit import fit
    from dre.cli.info import info
    from dre.cli.start import start
    from dre.cli.transform import transform

    app = typer.Typer(
        help="Deep Recursive Embedding: maps of high-dimensional data, drawn by a network that learns the map.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(start)
    for command in (fit, transform, info, compare, bench):
        app.command()(command)
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as problem:
        if os.environ.get("DRE_DEBUG"):
            raise
        print(f"dre: {problem}", file=sys.stderr)
        sys.exit(1)
