"""``dre transform``: embed new rows with a fitted model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.echo import echo
from dre.cli.options import AllowExternal, Data, Decimal, Device, Force, Id, Missing, Threads, Vector, as_usage_error

if TYPE_CHECKING:
    from dre.model.estimator import DRE

CHUNK = 2**14  # rows that are read, embedded and written at a time
SPREAD_SAMPLE, FEWEST = 2_000, 20  # rows whose spread is compared with that of the fit, and the fewest that tell it
LEAST_SPREAD, MOST_SPREAD = 0.2, 3.0  # of rows in the same units
STDOUT = "-"


def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by `dre fit`.")],
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File for the embedding: .npy, .csv, .tsv (also .gz), .parquet, or .h5ad, a copy of DATA with the "
            "embedding added; - prints it as CSV.",
        ),
    ],
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Use the network as it was after this stage, counted from 0.", show_default="the last stage"
        ),
    ] = None,
    device: Device = "auto",
    force: Force = False,
    threads: Threads = None,
    row_id: Id = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    vector: Vector = None,
    allow_external: AllowExternal = False,
) -> None:
    """Embed new rows with a fitted model.

    Rows are read, embedded and written in chunks, so memory use does not depend on their number. Columns of a table are
    matched by name to those of the fit; other columns are ignored.

    **Examples:**

    - `dre transform cells.safetensors new.csv -o embedding.csv`

    - `dre transform cells.safetensors new.h5ad:obsm/X_pca -o embedded.h5ad`

    - `dre transform mnist.safetensors mnist:test -o before.npy --stage 0`

    - `dre transform cells.safetensors new.csv -o - | head`
    """
    from dre.cli.data import as_fitted, match_columns, open_data, output_spec
    from dre.cli.map import load_model, overwritten
    from dre.data.range_error import RangeError
    from dre.io.readers import ReadOptions
    from dre.io.writers import check_writable, open_sink, open_stdout
    from dre.progress.display import progress_bar, say

    with as_usage_error():
        if str(output) != STDOUT:
            check_writable(output, force=force, read=[model, *overwritten(output, data)])
        options = ReadOptions(id=row_id, missing=missing, decimal=decimal, vector=vector, allow_external=allow_external)
    fitted = load_model(model, device)
    source = match_columns(fitted, open_data(data, as_fitted(fitted, options), tell="none"), keep_others=False)
    n, dropped = source.rows.shape[0], source.dropped
    for line in (*source.cautions, *_spread_caution(fitted, _slice(source.rows, 0, min(n, CHUNK)))):
        say(f"dre: {line}")
    about = output_spec(source, fitted.n_components, data)
    with as_usage_error(), suppress(RangeError):  # which names a row, and comes again below
        fitted.transform(_slice(source.rows, 0, 1), stage=stage)  # fails early on a wrong shape or stage
    opened = open_stdout(about) if str(output) == STDOUT else open_sink(output, about, force=force)
    with opened as sink, progress_bar("embedding", n) as advance:
        for start in range(0, n, CHUNK):
            try:
                embedding = fitted.transform(_slice(source.rows, start, min(n, start + CHUNK)), stage=stage)
            except RangeError as problem:
                raise problem.located(first_row=start) from None
            sink.write(embedding)
            advance(len(embedding))
    left_out = "" if dropped is None else f"; {len(dropped.kept) - n:,} rows lack values and are NaN"
    if str(output) == STDOUT:
        say(f"dre: embedded {n:,} rows{left_out}")
    else:
        echo(f"Wrote the embedding of {n:,} rows to {output}{left_out}.")


def _spread_caution(model: DRE, rows: Any) -> list[str]:
    """A line if the rows lie much farther from the center, or much nearer to it, than those of the fit: in other units."""
    import numpy as np
    import torch

    from dre.data.subsample import evenly_spaced_ids, to_array

    ids = evenly_spaced_ids(rows.shape[0], SPREAD_SAMPLE)
    if len(ids) < FEWEST:
        return []
    scaled = model.module().scaling(torch.from_numpy(to_array(rows, ids)))
    spread = float(np.sqrt(scaled.square().mean().item()))  # 1 in the fit
    if LEAST_SPREAD < spread < MOST_SPREAD:
        return []
    return [f"these rows spread {spread:.2g} times as far as those of the fit: check their units and their normalization"]


def _slice(rows: Any, start: int, stop: int) -> Any:
    from dre.data.rows import RowSlice, is_rows

    return RowSlice(rows, start, stop) if is_rows(rows) else rows[start:stop]
