"""What commands share of DATA: how it is said, opened and told of, and where its labels come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dre.sources import Source

Data = Annotated[
    str,
    typer.Argument(
        help="Rows: .npy, .npz, .csv, .tsv (also .gz), .parquet, .h5, .h5ad, .zarr, a folder of images, or the name of a data "
        "set; a part of a file behind a colon, cells.h5ad:obsm/X_pca."
    ),
]
Device = Annotated[str, typer.Option(help="Where the network computes: auto, cpu, cuda, cuda:1.")]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.")]


def opened(data: str) -> Source:
    """DATA, with what a user should know of it said on the way."""
    from dre.sources import open_source

    source = open_source(data)
    for line in source.told:
        typer.echo(f"dre: {line}", err=True)
    return source


def file_of(data: str) -> Path | None:
    """The file that DATA names, without the part behind a colon; None for the name of a data set."""
    for said in (data, data.rpartition(":")[0]):
        if said and Path(said).expanduser().exists():
            return Path(said).expanduser()
    return None


def labelled(source: Source, labels: str | None) -> tuple[Source, Any]:
    """The rows, and one label for each: a column of DATA, which is then no feature, or a file with as many."""
    if labels is None:
        return source, None
    if labels in source.metadata:
        return source, source.metadata[labels]
    if source.columns is not None and labels in source.columns:
        return _without(source, source.columns.index(labels))
    if Path(labels).expanduser().exists():
        from dre.bench.own_data import read_labels

        return source, read_labels(Path(labels).expanduser(), source.rows.shape[0])
    known = [*source.metadata, *(source.columns or [])]
    shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "") or "none"
    raise ValueError(f"--labels {labels}: neither a column of DATA nor a file; columns: {shown}")


def _without(source: Source, column: int) -> tuple[Source, Any]:
    from dataclasses import replace

    import numpy as np

    from dre.rows import is_rows, whole

    rows = whole(source.rows) if is_rows(source.rows) else source.rows
    kept = [i for i in range(rows.shape[1]) if i != column]
    assert source.columns is not None
    columns = [source.columns[i] for i in kept]
    return replace(source, rows=rows[:, kept], columns=columns), np.asarray(rows[:, column])
