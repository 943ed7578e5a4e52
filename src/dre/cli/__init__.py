"""The command line: ``dre``, one file per command."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

WRONG_USE, STOPPED = 2, 130  # 130 is what shells give for Ctrl-C
TOLD = (ValueError, TypeError, OSError, ImportError)  # kinds of errors whose text was written to be read by users

HELP = """Maps of high-dimensional data, drawn by a network that learns the map: Deep Recursive Embedding.

DATA is a file (.npy, .npz, .csv, .tsv, .parquet, .h5, .h5ad, .zarr), a folder of images, or the name of a data set. A map is
a model, which places new rows too, or a file of places.
"""
EPILOG = """**Start here:**

- `dre demo`

- `dre fit cells.csv -o cells.safetensors`

- `dre transform cells.safetensors new.csv -o places.csv`

Every command has examples: `dre fit --help`. Nothing is written over without --force, and Ctrl-C leaves no half-written file.

**Exit codes:** 0 done; 1 the run failed; 2 wrong use, with nothing computed; 130 stopped by Ctrl-C.
"""


def app() -> typer.Typer:
    """All commands, in the order in which one needs them."""
    from dre.cli.compare import compare
    from dre.cli.demo import demo
    from dre.cli.evaluate import evaluate
    from dre.cli.explore import explore
    from dre.cli.fit import fit
    from dre.cli.info import info
    from dre.cli.plot import plot
    from dre.cli.start import start
    from dre.cli.transform import transform

    panels: dict[str, list[Callable[..., None]]] = {
        "From data to a map": [demo, fit, transform, info],
        "Look at it": [explore, plot],
        "Judge it": [evaluate, compare],
    }
    made = typer.Typer(
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(start)
    for panel, commands in panels.items():
        for command in commands:
            made.command(rich_help_panel=panel)(_stoppable(command))
    return made


def main() -> None:
    """What the command ``dre`` calls. An error that has a remedy is two lines; --debug shows where it came from."""
    from dre.cli.start import DEBUG
    from dre.cli.wrong_use import WrongUseError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say  # type: ignore[assignment]
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # commands compare names themselves
            app()()
    except Exception as problem:
        if os.environ.get(DEBUG):
            raise
        print(f"dre: {_told(problem)}", file=sys.stderr)
        sys.exit(WRONG_USE if isinstance(problem, WrongUseError) else 1)


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command with a line. What it was writing is gone by then: files are whole or not there."""

    @functools.wraps(command)
    def run(*given: Any, **named: Any) -> None:
        try:
            command(*given, **named)
        except KeyboardInterrupt:
            typer.echo("\ndre: stopped by Ctrl-C; no file is left half-written", err=True)
            raise typer.Exit(STOPPED) from None

    return run


def _say(message: Warning | str, *where: Any) -> None:
    print(f"dre: {message}", file=sys.stderr)


def _told(problem: Exception) -> str:
    from dre.cli.start import DEBUG

    if isinstance(problem, TOLD) and str(problem):
        return str(problem)
    text = next((line for line in str(problem).splitlines() if line.strip()), "")
    kind = type(problem).__name__
    return f"{kind}: {text}\nTo see where, call dre --debug, or set {DEBUG}=1." if text else f"{kind}; dre --debug shows where"
