"""``dre fit``: learn a map from a file, and keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dre.cli.completion import RECIPES, one_of
from dre.cli.data import Data, Device, Force, Labels
from dre.cli.wrong_use import refusing

LABELS = {"label", "labels", "class", "target", "cluster", "y"}  # what columns of labels are often called


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The model, a .safetensors file.")],
    recipe: Annotated[
        str, typer.Option(metavar="NAME", autocompletion=one_of(RECIPES), help=f"{', '.join(RECIPES)}.")
    ] = "auto",
    schedule: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The stages themselves: 'x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15'."),
    ] = None,
    perplexity: Annotated[float | None, typer.Option(metavar="P", help="Of every Gaussian affinity.")] = None,
    recursions: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="How often neighbourhoods are computed again from the network's hidden layers."),
    ] = None,
    components: Annotated[int, typer.Option(metavar="N", min=1, help="Dimensions of the map.")] = 2,
    labels: Labels = None,
    embedding: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the places of the rows: .npy, .csv, .parquet, or .h5ad for cells."),
    ] = None,
    device: Device = "auto",
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The same seed gives the same map on the same CPU.")
    ] = None,
    force: Force = False,
) -> None:
    """Learn a map of your data, and keep the network that draws it.

    Ends with a summary: what was learned, how long each stage took, and how far the map can be trusted; with labels, which the
    network does not learn from, also how often neighbours share them. Ctrl-C ends the fit early and keeps what was learned;
    a second one stops at once and keeps nothing.

    **Examples:**

    - `dre fit cells.csv -o cells.safetensors`

    - `dre fit cells.h5ad:obsm/X_pca -o cells.safetensors --labels cell_type`

    - `dre fit photos/ -o photos.safetensors --embedding places.csv`

    - `dre fit mnist -o mnist.safetensors --recipe fast --seed 0`

    - `dre fit x.npy -o x.safetensors --schedule 'x: gaussian(50) -> kl * 40'`
    """
    from dre.cli.columns import remember
    from dre.cli.data import file_of, labelled, opened
    from dre.cli.map import MODEL, lost
    from dre.cli.summary import summary
    from dre.io.writers import OutputSpec, check_writable, open_sink
    from dre.model.estimator import DRE

    with refusing():
        check_writable(output, [MODEL], force=force, read=[file_of(data)])
        if embedding is not None:
            check_writable(embedding, force=force, read=[output, *lost(embedding, data)])
    source, known = labelled(opened(data), labels)
    for name in _like_labels(source.columns or []):
        typer.echo(f"dre: the column {name!r} is a feature; if it holds labels, pass --labels {name}", err=True)
    model = DRE(
        recipe,
        n_components=components,
        schedule=schedule,
        perplexity=perplexity,
        recursions=recursions,
        device=device,
        random_state=seed,
    )
    with refusing():
        _check_plan(model, tuple(source.rows.shape))
    model.fit(source.rows)
    remember(model, source)
    model.save(output)
    if embedding is not None:
        about = OutputSpec(len(model.embedding_), components, names=source.names, source=file_of(data))
        with open_sink(embedding, about, force=force) as sink:
            sink.write(model.embedding_)
    typer.echo(summary(model, source.rows, known))
    typer.echo(f"\nThe model is in {output}" + (f", the places of the rows in {embedding}." if embedding is not None else "."))


def _like_labels(columns: list[str]) -> list[str]:
    """Those that are called as labels are: learned from, they would give themselves away."""
    return [name for name in columns if name.strip().lower() in LABELS]


def _check_plan(model: Any, shape: tuple[int, ...]) -> None:
    """What no recipe can be made of is said now, and not after the rows were read."""
    from dre.data.image_layout import model_shape
    from dre.plan.overrides import Overrides, apply_overrides
    from dre.plan.recipe import DataSpec
    from dre.plan.schedule import Schedule
    from dre.runtime import resolve_device

    stages = None if model.schedule is None else Schedule.parse(model.schedule)
    facts = DataSpec(shape[0], model_shape(shape[1:]), resolve_device(model.device).type)
    apply_overrides(model.recipe, facts, Overrides(schedule=stages, perplexity=model.perplexity, recursions=model.recursions))
