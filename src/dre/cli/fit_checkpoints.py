"""The checkpoints of ``dre fit``: checked before rows are read, begun with the fit, removed with a complete model."""

from __future__ import annotations

from pathlib import Path

import typer

from dre.cli.echo import echo
from dre.cli.options import UsageError


def check_checkpoints(folder: Path | None, minutes: float | None, *, resume: bool, force: bool) -> None:
    """Check the options before the rows are read."""
    from dre.model.checkpoint import CheckpointFolder

    if folder is None:
        for option in ["--resume"] * resume + ["--checkpoint-minutes"] * (minutes is not None):
            raise UsageError(f"{option} needs the folder of the checkpoints: pass --checkpoint FOLDER too")
        return
    CheckpointFolder(folder).check_unused(resume=resume or force)


def begin_checkpoints(folder: Path | None, *, resume: bool) -> None:
    """Remove checkpoints that --force gives up, now that the fit is about to begin."""
    from dre.model.checkpoint import CheckpointFolder

    if folder is None or not folder.is_dir():
        found = []
    else:
        with CheckpointFolder(folder) as earlier:
            found = earlier.files()
            if found and not resume:
                earlier.clear()
    if folder is not None and resume and not found:
        echo(f"dre: {folder} has no checkpoint yet: the fit begins at its start", err=True)


def end_checkpoints(folder: Path, *, interrupted: bool) -> None:
    """Remove the checkpoints of a model that is complete."""
    from dre.model.checkpoint import CheckpointFolder

    if interrupted:
        typer.echo(f"dre: {folder} has a checkpoint: the same command with --resume --force goes on", err=True)
        return
    with CheckpointFolder(folder) as done:
        done.clear()
