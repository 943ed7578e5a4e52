"""``dre transform``: new rows through a fitted map."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dre.cli.data import Data, Device, Force
from dre.cli.wrong_use import refusing

PIECE = 2**16  # rows at a time


def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that `dre fit` wrote.")],
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The places: .npy, .csv, .parquet; for cells of an .h5ad a copy of it."
        ),
    ],
    stage: Annotated[
        int | None, typer.Option(metavar="N", help="The map as it was after this stage, counted from 0; the last without.")
    ] = None,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Place new rows on a fitted map, by a forward pass.

    They are read, embedded and written piece by piece: memory does not grow with their number. Columns of a table are found by
    the names that they had in the fit; others are left out.

    **Examples:**

    - `dre transform cells.safetensors new.csv -o places.csv`

    - `dre transform cells.safetensors new.h5ad:obsm/X_pca -o mapped.h5ad`

    - `dre transform mnist.safetensors mnist:test -o before.npy --stage 0`
    """
    from dre.cli.columns import features
    from dre.cli.data import file_of, opened
    from dre.cli.map import load_model, lost
    from dre.io.writers import OutputSpec, check_writable, open_sink

    with refusing():
        check_writable(output, force=force, read=[model, *lost(output, data)])
    fitted = load_model(model, device)
    source = features(fitted, opened(data), tell=False)
    n = source.rows.shape[0]
    about = OutputSpec(n, fitted.n_components, names=source.names, source=file_of(data))
    with refusing():
        fitted.transform(_stretch(source.rows, 0, 1), stage=stage)  # rows of another shape, a stage that is not there
    with open_sink(output, about, force=force) as sink, _bar(n) as bar:
        for start in range(0, n, PIECE):
            places = fitted.transform(_stretch(source.rows, start, min(n, start + PIECE)), stage=stage)
            sink.write(places)
            bar.update(len(places))
    typer.echo(f"The places of {n:,} rows are in {output}.")


def _stretch(rows: Any, start: int, stop: int) -> Any:
    from dre.data.rows import RowSlice, is_rows

    return RowSlice(rows, start, stop) if is_rows(rows) else rows[start:stop]


def _bar(n: int) -> Any:
    from tqdm.auto import tqdm

    from dre.observe.progress import is_interactive

    return tqdm(total=n, unit=" rows", unit_scale=True, leave=False, delay=1, disable=not is_interactive())
