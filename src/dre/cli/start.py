"""What stands before the commands: ``dre --version``, and ``dre --debug``, which shows where an error came from."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import dre

DEBUG = "DRE_DEBUG"  # what else shows it


def _show(wanted: bool) -> None:
    if wanted:
        typer.echo(dre.__version__)
        raise typer.Exit


def start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Typer shows the version itself; an error is caught where the commands were called."""
    if debug:
        os.environ[DEBUG] = "1"
