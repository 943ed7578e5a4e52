"""``dre transform``: embed new rows with a fitted model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dre.cli.echo import echo
from dre.cli.options import (
    AllowExternal,
    Data,
    Decimal,
    Device,
    Force,
    Id,
    Missing,
    Threads,
    UsageError,
    Vector,
    as_usage_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dre.io.readers import Source
    from dre.io.writers import OutputSpec, Sink
    from dre.io.writers.pieces import Shard
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
            "embedding added; - prints it as CSV. With --shard, a folder.",
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
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Write pieces to a folder, as process I of N (counted from 0). Finished pieces are skipped, so that a run "
            "can be repeated.",
        ),
    ] = None,
) -> None:
    """Embed new rows with a fitted model.

    Rows are read, embedded and written in chunks, so memory use does not depend on their number. Columns of a table are
    matched by name to those of the fit; other columns are ignored.

    **Examples:**

    - `dre transform cells.safetensors new.csv -o embedding.csv`

    - `dre transform cells.safetensors new.h5ad:obsm/X_pca -o embedded.h5ad`

    - `dre transform mnist.safetensors mnist:test -o before.npy --stage 0`

    - `dre transform cells.safetensors new.csv -o - | head`

    - `dre transform cells.safetensors 'shards/*.parquet' -o embedded --shard 0/8`
    """
    from dre.cli.data import as_fitted, match_columns, model_rows, open_data, output_spec
    from dre.cli.map import load_model, overwritten
    from dre.data.range_error import RangeError
    from dre.io.readers import ReadOptions
    from dre.io.readers.source import match_suffix
    from dre.io.writers import check_writable, open_sink, open_stdout
    from dre.io.writers.formats import FORMATS
    from dre.io.writers.pieces import Shard
    from dre.progress.counted import agreeing, counted
    from dre.progress.display import progress_bar, say

    with as_usage_error():
        own_shard = None if shard is None else Shard.parse(shard)
        if own_shard is not None and match_suffix(output.name, FORMATS) is not None:
            raise UsageError(f"--shard writes a folder of pieces, and {output} is the name of a file: pass -o FOLDER")
        if str(output) != STDOUT and own_shard is None:
            check_writable(output, force=force, read=[model, *overwritten(output, data)])
        options = ReadOptions(id=row_id, missing=missing, decimal=decimal, vector=vector, allow_external=allow_external)
    fitted = load_model(model, device)
    source = match_columns(fitted, open_data(data, as_fitted(fitted, options), tell="none"), keep_others=False)
    n, dropped = source.rows.shape[0], source.dropped
    for line in (*source.cautions, *_spread_caution(fitted, source)):
        say(f"dre: {line}")
    about = output_spec(source, fitted.n_components, data)
    with as_usage_error(), suppress(RangeError):  # which names a row, and comes again below
        # fails early on a wrong shape or stage
        fitted.transform(model_rows(source.preparation, _slice(source.rows, 0, 1)), stage=stage)
    if own_shard is not None:
        _write_pieces(fitted, source, about, PieceJob(model, output, stage), own_shard)
        return
    opened = open_stdout(about) if str(output) == STDOUT else open_sink(output, about, force=force)
    with opened as sink, progress_bar("embedding", n) as advance:
        _embed(fitted, source, (0, n), stage, sink, advance)
    lacking = 0 if dropped is None else len(dropped.kept) - n
    left_out = f"; {counted(lacking, 'row', 'lack')} values and {agreeing(lacking, 'are')} NaN" if lacking else ""
    if str(output) == STDOUT:
        say(f"dre: embedded {counted(n, 'row')}{left_out}")
    else:
        echo(f"Wrote the embedding of {counted(n, 'row')} to {output}{left_out}.")


def _embed(
    model: DRE, source: Source, ends: tuple[int, int], stage: int | None, sink: Sink, advance: Callable[[int], None]
) -> None:
    """Read, embed and write a range of the rows, in chunks."""
    from dre.cli.data import model_rows
    from dre.data.range_error import RangeError

    for start in range(*ends, CHUNK):
        try:
            rows = _slice(source.rows, start, min(ends[1], start + CHUNK))
            embedding = model.transform(model_rows(source.preparation, rows), stage=stage)
        except RangeError as problem:
            raise problem.located(first_row=start) from None
        sink.write(embedding)
        advance(len(embedding))


class PieceJob(NamedTuple):
    """Where pieces go, and the file of the model that makes them."""

    model: Path
    folder: Path
    stage: int | None


def _write_pieces(model: DRE, source: Source, about: OutputSpec, job: PieceJob, shard: Shard) -> None:
    """Write the pieces of a shard that are not there yet."""
    import hashlib
    from dataclasses import replace

    import numpy as np

    from dre.data.fingerprint import fingerprint
    from dre.io.writers import open_sink
    from dre.io.writers.pieces import PieceFolder, piece_edges
    from dre.progress.counted import agreeing, counted
    from dre.progress.display import progress_bar

    with as_usage_error():
        edges = piece_edges(source.rows.shape[0], getattr(source.rows, "edges", None))
        identity = {
            "model": hashlib.sha256(job.model.read_bytes()).hexdigest(),
            "data": fingerprint(source.rows),
            "stage": str(job.stage),
        }
        folder = PieceFolder(job.folder, identity, edges)
    missing, names = folder.missing(shard), source.names
    total = sum(int(edges[i + 1] - edges[i]) for i in missing)
    with progress_bar("embedding", total) as advance:
        for i in missing:
            ends = int(edges[i]), int(edges[i + 1])
            numbers = np.arange(*ends) if source.dropped is None else source.file_rows[slice(*ends)]
            own = numbers if names is None else names[slice(*ends)]
            title = "row" if names is None else about.names_title
            spec = replace(about, rows=ends[1] - ends[0], names=own, names_title=title, kept=None)
            with open_sink(folder.piece(i), spec) as sink:
                _embed(model, source, ends, job.stage, sink, advance)
    there = len(shard.pieces(len(edges) - 1)) - len(missing)
    before = f"; {there:,} {agreeing(there, 'were')} there" if there else ""
    pieces = f"{counted(len(missing), 'piece')} of {len(edges) - 1:,}"
    echo(f"Wrote {pieces} with {counted(total, 'row')} to {job.folder}, for shard {shard.number}/{shard.count}{before}.")


def _spread_caution(model: DRE, source: Source) -> list[str]:
    """A line if the rows lie much farther from the center, or much nearer to it, than those of the fit: in other units."""
    import numpy as np
    import torch

    from dre.cli.data import model_rows
    from dre.data.subsample import evenly_spaced_ids, to_array

    ids = evenly_spaced_ids(min(source.rows.shape[0], CHUNK), SPREAD_SAMPLE)
    if len(ids) < FEWEST:
        return []
    rows = to_array(source.rows, ids)
    if model.preparation_ is not None:
        try:
            rows = to_array(model.prepare(model_rows(source.preparation, rows)))
        except ValueError:  # which comes again, with the row's number in the file, when the row is embedded
            return []
    scaled = model.module().cpu().scaling(torch.from_numpy(rows))
    spread = float(np.sqrt(scaled.square().mean().item()))  # 1 in the fit
    if LEAST_SPREAD < spread < MOST_SPREAD:
        return []
    return [f"these rows spread {spread:.2g} times as far as those of the fit: check their units and their normalization"]


def _slice(rows: Any, start: int, stop: int) -> Any:
    from dre.data.rows import RowSlice, is_rows

    return RowSlice(rows, start, stop) if is_rows(rows) else rows[start:stop]
