"""``dre info``: describe a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.echo import echo

if TYPE_CHECKING:
    from dre.plan.schedule import Schedule


def info(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by `dre fit` or `DRE.save`.")
    ],
) -> None:
    """Describe a model: its input, its network, and how it was trained.

    **Examples:**

    - `dre info cells.safetensors`
    """
    from dre.cli.map import reading_model
    from dre.data.table_preparation import TablePreparation
    from dre.io.readers.features import fill_message
    from dre.io.readers.mixed import column_messages, fill_messages
    from dre.io.readers.source import summarize_names
    from dre.model.archive import load_map
    from dre.progress.counted import counted

    with reading_model(model):
        fitted, about = load_map(model)
    shape = " × ".join(map(str, fitted.shape))
    parameters = sum(p.numel() for p in fitted.encoder.parameters())
    echo(f"{model}, {model.stat().st_size / 2**20:.1f} MiB: {about['class']} for rows of {shape} values")
    kept = counted(len(fitted.stages), "stage")
    echo(f"{parameters:,} parameters, {kept}, {counted(fitted.n_components, 'dimension')}")
    if isinstance(fitted.preparation, TablePreparation):
        for line in (*column_messages(fitted.preparation), *fill_messages(fitted.preparation)):
            echo(line)
    elif about["feature_names_in"] is not None:
        echo(f"features: {summarize_names(about['feature_names_in'])}")
    for line in fill_message(about.get("fill_values") or {}):
        echo(line)
    echo()
    echo(f"{fitted.recipe}\n")
    echo("\n".join(stage_lines(fitted.history, fitted.recipe.schedule, len(fitted.stages))))


def stage_lines(history: list[dict[str, Any]], schedule: Schedule, kept: int) -> list[str]:
    """One line per stage: its text, its last loss, its duration, and whether it was undone or not begun.

    The first ``kept`` were not undone. A stage without any epoch was skipped, or the fit ended before it.
    """
    from dre.model.stage_summary import summarize_stages

    lines = []
    for each in summarize_stages(history, schedule, kept):
        took = [] if each.loss is None else [f"loss {each.loss:.4g}", f"{each.seconds:.1f} s"]
        if took or each.outcome:
            lines.append("  ".join(filter(None, (f"stage {each.number}", each.plan, *took, each.outcome))))
    return lines
