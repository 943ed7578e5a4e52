"""What commands share of DATA: how it is said, opened and told of, and where its labels come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.completion import DEVICES, one_of, rows
from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.io.readers import Source

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        autocompletion=rows,
        show_default=False,
        help="Rows: .npy, .npz, .csv, .tsv (also .gz), .parquet, .h5, .h5ad, .zarr, a folder of images, or the name of a data "
        "set; a part of a file behind a colon, cells.h5ad:obsm/X_pca.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(metavar="COLUMN|FILE", help="One label per row: a column of DATA, which is no feature then, or a file."),
]
Device = Annotated[
    str, typer.Option(metavar="NAME", autocompletion=one_of(DEVICES), help="Where to compute: auto, cpu, cuda, cuda:1.")
]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.")]


def opened(data: str) -> Source:
    """DATA, with what a user should know of it said on the way."""
    from dre.io.readers import SourceError, open_source

    with refusing(SourceError):
        source = open_source(data)
    for line in source.messages:
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
        return source, _all_there(labels, source.metadata[labels])
    if source.columns is not None and labels in source.columns:
        from dre.cli.columns import apart

        return apart(source, labels)
    if Path(labels).expanduser().exists():
        from dre.io.readers.labels import read_labels

        with refusing():
            return source, read_labels(Path(labels).expanduser(), source.rows.shape[0])
    from dre.io.readers.source import summarize_names

    columns = summarize_names([*source.metadata, *(source.columns or [])])
    raise WrongUseError(f"--labels {labels}: neither a column of DATA nor a file that is there; columns: {columns}")


def _all_there(name: str, labels: Any) -> Any:
    empty = labels == ""
    if empty.any():
        raise WrongUseError(f"--labels {name}: that of row {int(empty.argmax())} is empty; give it a name, or drop that row")
    return labels
