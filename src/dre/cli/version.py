"""``dre --version``: which version of the package this is."""

from __future__ import annotations

from typing import Annotated

import typer

import dre


def _show(wanted: bool) -> None:
    if wanted:
        typer.echo(dre.__version__)
        raise typer.Exit


def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.", callback=_show, is_eager=True)] = False,
) -> None:
    """What stands before the commands; typer calls ``_show`` itself."""
