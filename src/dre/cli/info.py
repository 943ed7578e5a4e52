"""``dre info``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def info(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that `dre fit` or `DRE.save` wrote.")
    ],
) -> None:
    """Say what a model embeds, and how it learned to.

    **Examples:**

    - `dre info cells.safetensors`
    """
    from dre.cli.map import reading_model
    from dre.cli.summary import stages
    from dre.model.archive import load_map

    with reading_model(model):
        fitted, about = load_map(model)
    shape = " × ".join(map(str, fitted.shape))
    numbers = sum(p.numel() for p in fitted.encoder.parameters())
    typer.echo(f"{model}, {model.stat().st_size / 2**20:.1f} MiB: {about['class']} for rows of {shape} values")
    typer.echo(f"{numbers:,} trained numbers, {len(fitted.stages)} stages, a map of {fitted.n_components} dimensions\n")
    typer.echo(f"{fitted.recipe}\n")
    typer.echo("\n".join(stages(fitted.history, fitted.recipe.schedule)))
