"""Lines that commands print. Names in them come from files: what a terminal would obey is escaped."""

from __future__ import annotations

import typer

from dre.progress.display import is_muted
from dre.progress.printable import printable


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line, to stderr with ``err``."""
    if not is_muted():
        typer.echo(printable(text), err=err)
