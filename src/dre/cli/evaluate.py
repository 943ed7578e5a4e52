"""``dre evaluate``: how far a map can be trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.completion import PROTOCOLS, one_of
from dre.cli.data import Data, Device, Force, Labels
from dre.cli.map import Map
from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.io.readers import Source
    from dre.metrics import Evaluation

SCORED = 10_000  # rows unless told otherwise: all pairs of them are looked at, which takes some seconds
ALL = "all"
FOR_CELLS, WITHOUT_NAMES = ".h5ad", ".npy"


def evaluate(
    data: Data,
    embedding: Map,
    labels: Labels = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=one_of(PROTOCOLS),
            help="standard counts as the textbook does, paper as the tables of the paper do.",
        ),
    ] = "standard",
    sample: Annotated[
        str,
        typer.Option(metavar="N|all", autocompletion=one_of([ALL]), help="Rows to score, taken from end to end."),
    ] = str(SCORED),
    neighbors: Annotated[
        int, typer.Option("-k", "--neighbors", metavar="K", min=1, help="How many neighbours are looked at.")
    ] = 7,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write the scores: a .json file.")
    ] = None,
    per_point: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the trustworthiness and continuity of every row, low where the map lies: .csv, .parquet, .npy.",
        ),
    ] = None,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Say how far a map can be trusted, measure by measure.

    The map may be of any method: places of the rows of DATA, in their order, in a file. Of a model the rows are mapped first,
    and every stage is scored: what each recursion gave.

    **Examples:**

    - `dre evaluate cells.csv places.csv`

    - `dre evaluate cells.h5ad:obsm/X_pca cells.safetensors --labels cell_type`

    - `dre evaluate cells.h5ad:obsm/X_pca cells.h5ad:obsm/X_umap`

    - `dre evaluate mnist:test mnist.safetensors --labels digit -o scores.json`

    - `dre evaluate cells.csv places.csv --sample all --per-point lies.csv`
    """
    from dre.cli.data import labelled, opened
    from dre.cli.map import is_model, map_of
    from dre.cli.scores import table
    from dre.data.subsample import evenly_spaced_ids, to_array
    from dre.metrics import evaluate as score

    if is_model(data):
        raise WrongUseError(f"{data} is a model: DATA comes first, as in dre evaluate {embedding} {data}")
    _check(protocol, output, per_point, force=force, read=[data, embedding])
    most = _rows(sample)
    source, known = labelled(opened(data), labels)
    n = source.rows.shape[0]
    ids = evenly_spaced_ids(n, n if most is None else most)
    _check_sample(ids, n, neighbors, per_point)
    some = replace(
        source,
        rows=to_array(source.rows, ids),
        names=ids if source.names is None else source.names[ids],
        metadata={},
    )
    # a model maps those rows alone; places are of all rows, and must be as many
    found = map_of(embedding, some if is_model(embedding) else source, device=device, every_stage=True)
    maps = found.stages if is_model(embedding) else [found.places[ids]]
    told = None if known is None else known[ids]
    scored = found.rows if is_model(embedding) else some.rows  # a model reads its own columns alone
    results = [score(scored, places, told, k=neighbors, protocol=protocol, device=device) for places in maps]
    of = f" (of {n:,}, from end to end)" if len(ids) < n else ""
    typer.echo(results[-1].title.replace(" rows", f" rows{of}", 1))
    if len(maps) > 1:
        typer.echo("\n".join(found.titles))
    heads = [title.partition(":")[0] for title in found.titles] if is_model(embedding) else ["value"]
    typer.echo("\n" + table(dict(zip(heads, results, strict=True))))
    if output is not None:
        _write_scores(output, results, found.titles, rows=len(ids), of=n)
    if per_point is not None:
        _write_points(per_point, results[-1], some, force)
    for path, what in ((output, "scores"), (per_point, "values of every point")):
        if path is not None:
            typer.echo(f"\nThe {what} are in {path}.")


def _check(protocol: str, output: Path | None, per_point: Path | None, *, force: bool, read: list[str]) -> None:
    from dre.cli.data import file_of
    from dre.io.writers import FORMATS, check_writable
    from dre.metrics.inputs import check_choice

    files = [file_of(said) for said in read]
    with refusing():
        check_choice("--protocol", protocol, PROTOCOLS)
        if output is not None:
            check_writable(output, [".json"], force=force, read=files)
        if per_point is not None:
            check_writable(per_point, [suffix for suffix in FORMATS if suffix != FOR_CELLS], force=force, read=files)


def _rows(sample: str) -> int | None:
    if sample == ALL:
        return None
    number = sample.replace(",", "").replace("_", "")
    if not number.isdigit() or int(number) == 0:
        raise WrongUseError(f"--sample {sample}: expected a number of rows, or {ALL}")
    return int(number)


def _check_sample(ids: Any, n: int, k: int, per_point: Path | None) -> None:
    from dre.metrics.inputs import check_k

    with refusing():
        check_k(k, len(ids))
    if per_point is not None and len(ids) < n and per_point.suffix.lower() == WITHOUT_NAMES:
        raise WrongUseError(
            f"--per-point {per_point}: {len(ids):,} of {n:,} rows are scored, and a {WITHOUT_NAMES} can't say which; "
            f"write .csv or .parquet, or pass --sample {ALL}"
        )


def _write_scores(path: Path, results: list[Evaluation], titles: list[str], *, rows: int, of: int) -> None:
    from dre.compare.record import provenance, write

    maps = [{"map": title, "scores": dict(result)} for title, result in zip(titles, results, strict=True)]
    write(path, {**provenance(), "rows": rows, "of": of, "how": results[-1].title, "maps": maps})


def _write_points(path: Path, result: Evaluation, source: Source, force: bool) -> None:
    import numpy as np

    from dre.io.writers import OutputSpec, open_sink

    values = np.stack(list(result.per_point.values()), axis=1).astype(np.float32)
    rows, columns = values.shape
    about = OutputSpec(rows, columns, names=source.names, titles=tuple(result.per_point))
    with open_sink(path, about, force=force) as sink:
        sink.write(values)
