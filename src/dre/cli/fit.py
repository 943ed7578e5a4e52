"""``dre fit``: learn a map from a file, and keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre.cli.data import Data, Device, Force


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="The model, a .safetensors file.")],
    recipe: Annotated[str, typer.Option(help="auto, fast, paper, paper-tsne, paper-umap, deep-tsne, deep-umap.")] = "auto",
    schedule: Annotated[
        str | None, typer.Option(help="The stages themselves: 'x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15'.")
    ] = None,
    perplexity: Annotated[float | None, typer.Option(help="Of every Gaussian affinity.")] = None,
    recursions: Annotated[
        int | None, typer.Option(help="How often neighbourhoods are computed again from the network's hidden layers.")
    ] = None,
    components: Annotated[int, typer.Option(help="Dimensions of the map.")] = 2,
    labels: Annotated[
        str | None, typer.Option(help="For the summary alone: a column of DATA, or a file with one label per row.")
    ] = None,
    embedding: Annotated[
        Path | None, typer.Option(help="Also write the places of the rows: .npy, .csv, .parquet, or .h5ad for cells.")
    ] = None,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same map on the same CPU.")] = None,
    force: Force = False,
) -> None:
    """Learn a map of your data, and keep the network that draws it.

    Ends with a summary: what was learned, how long each stage took, and how far the map can be trusted.

    Examples:

    - `dre fit cells.csv -o cells.safetensors`

    - `dre fit cells.h5ad:obsm/X_pca -o cells.safetensors --labels cell_type --embedding mapped.h5ad`

    - `dre fit photos/ -o photos.safetensors --embedding places.csv`

    - `dre fit mnist -o mnist.safetensors --recipe fast --seed 0`
    """
    from dre.cli.data import file_of, labelled, opened
    from dre.cli.summary import summary
    from dre.estimator import DRE
    from dre.sinks import Embedding, check_writable, open_sink

    _check_model(output, force)
    if embedding is not None:
        check_writable(embedding, force=force)
    source, known = labelled(opened(data), labels)
    model = DRE(
        recipe,
        n_components=components,
        schedule=schedule,
        perplexity=perplexity,
        recursions=recursions,
        device=device,
        random_state=seed,
    ).fit(source.rows)
    model.save(output)
    if embedding is not None:
        about = Embedding(len(model.embedding_), components, names=source.names, source=file_of(data))
        with open_sink(embedding, about, force=force) as sink:
            sink.write(model.embedding_)
    typer.echo(summary(model, source.rows, known))
    typer.echo(f"\nThe model is in {output}" + (f", the places of the rows in {embedding}." if embedding is not None else "."))


def _check_model(path: Path, force: bool) -> None:
    """What can't be written is said now, and not after the fit."""
    import os

    if path.suffix.lower() != ".safetensors":
        raise ValueError(f"--output {path}: a model is a .safetensors file, such as {path.with_suffix('.safetensors').name}")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: pass --force to write over it, or another --output")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path} can't be written: choose a file in a folder that exists and can be written to")
