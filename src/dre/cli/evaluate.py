"""``dre evaluate``: scores of a map against the embedded rows."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.echo import echo
from dre.cli.options import (
    METRICS,
    PROTOCOLS,
    AllowExternal,
    Data,
    Decimal,
    Device,
    Force,
    Map,
    MapCategories,
    MetricKwds,
    SeveralScoredLabels,
    Standardize,
    Threads,
    UsageError,
    as_usage_error,
    complete_one,
    map_options,
    parse_metric_kwds,
)

if TYPE_CHECKING:
    from dre.data.metric import RowMetric
    from dre.io.readers import Source
    from dre.metrics import Evaluation

DEFAULT_SAMPLE = 10_000  # rows: the scores compare all pairs, which takes some seconds for so many
ALL = "all"
FOR_CELLS, WITHOUT_NAMES = ".h5ad", ".npy"
DESCRIPTIONS = {  # by the name of the metric: its best value, and what that value means
    "nearest_neighbor": (1, "nearest point has the same label"),
    "neighborhood_hit": (1, "neighbors share their label"),
    "trustworthiness": (1, "no false neighbors in the map"),
    "continuity": (1, "no neighbors lost in the map"),
    "shepard_goodness": (1, "order of distances is kept"),
    "normalized_stress": (0, "sizes of distances are kept"),
    "silhouette": (1, "classes are dense and separated"),
    "centroid_correlation": (1, "class distances are kept"),
}
VALUE_WIDTH, BEST_WIDTH = 9, 6


def evaluate(
    data: Data,
    embedding: Map,
    labels: SeveralScoredLabels = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_one(PROTOCOLS),
            help="Definition of the scores: standard is the usual one, paper is that of the paper's tables.",
        ),
    ] = "standard",
    sample: Annotated[
        str,
        typer.Option(
            metavar="N|all", autocompletion=complete_one([ALL]), help="Number of rows to score, evenly spaced in DATA."
        ),
    ] = str(DEFAULT_SAMPLE),
    n_neighbors: Annotated[
        int, typer.Option("-k", "--n-neighbors", metavar="K", min=1, help="Number of neighbors of each point.")
    ] = 7,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write the scores: a .json file.")
    ] = None,
    per_point: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the trustworthiness and continuity of each row, low where the map is distorted: .csv, "
            ".tsv (also .gz), .parquet, .npy.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_one(METRICS),
            help=f"Distance between rows: {', '.join(METRICS)}. Default: that of the model, or euclidean.",
        ),
    ] = None,
    metric_kwds: MetricKwds = None,
    standardize: Standardize = None,
    device: Device = "auto",
    force: Force = False,
    threads: Threads = None,
    categories: MapCategories = False,
    decimal: Decimal = None,
    allow_external: AllowExternal = False,
) -> None:
    """Score a map: trustworthiness, continuity, distances, and classes if there are labels.

    MAP may come from any method: a file with the coordinates of the rows of DATA, in the same order. A model embeds DATA
    first and is scored after each of its stages.

    **Examples:**

    - `dre evaluate cells.csv embedding.csv`

    - `dre evaluate cells.h5ad:obsm/X_pca cells.safetensors --labels cell_type`

    - `dre evaluate cells.h5ad:obsm/X_pca cells.h5ad:obsm/X_umap`

    - `dre evaluate cells.csv embedding.csv --labels cell_type --labels batch`

    - `dre evaluate penguins.csv embedding.csv --categories`

    - `dre evaluate mnist:test mnist.safetensors --labels digit -o scores.json`

    - `dre evaluate cells.csv embedding.csv --sample all --per-point points.csv`
    """
    from dre.cli.classes import labeled_rows, split_classes
    from dre.cli.data import choose_standardize
    from dre.cli.map import is_model, load_map, open_rows
    from dre.data.distance_matrix import DistanceRows
    from dre.data.subsample import evenly_spaced_ids, to_array

    if is_model(data):
        raise UsageError(f"{data} is a model: DATA comes first, as in dre evaluate {embedding} {data}")
    _check_files(protocol, output, per_point, force=force, read=[data, embedding])
    asked = _parse_metric(metric, metric_kwds)
    most = _parse_sample(sample)
    reading = map_options(
        categories=categories,
        decimal=decimal,
        allow_external=allow_external,
        labels=labels or [],
        standardize=standardize,
    )
    opened, model = open_rows(embedding, data, reading, device, tell="news" if is_model(embedding) else "all")
    assert opened is not None
    source, classes = split_classes(opened, labels or [])
    n = source.rows.shape[0]
    labeled = labeled_rows(classes, n)
    ids = labeled[evenly_spaced_ids(len(labeled), len(labeled) if most is None else most)]
    _check_sample(ids, source.file_length, n_neighbors, per_point)
    names = source.file_rows[ids] if source.names is None else source.names[ids]
    some = replace(source, rows=to_array(source.rows, ids), names=names, metadata={}, dropped=None)
    # A model embeds the sample only; a file of coordinates must have one point for each row of DATA.
    units = None if model is not None else choose_standardize(source, standardize, metric or "euclidean")
    how: dict[str, Any] = {"every_stage": True, "standardize": units, "allow_external": allow_external}
    loaded = load_map(embedding, source if model is None else some, model, **how)
    maps = loaded.stages if is_model(embedding) else [loaded.embedding[ids]]
    rows, measured = some.rows, loaded.metric if asked is None else asked
    if loaded.units is not None:  # a model is scored on its own features, in its units
        rows = loaded.units(rows if model is None else loaded.rows)
    if measured.is_precomputed:
        with as_usage_error():
            rows = to_array(DistanceRows(source.rows), ids)
    options: dict[str, Any] = {"k": n_neighbors, "protocol": protocol, "metric": measured, "device": device}
    results = [_score(rows, each, {name: values[ids] for name, values in classes.items()}, options) for each in maps]
    echo(results[-1].evaluation.title.replace(" rows", f" rows{_which_rows(len(ids), len(labeled), n)}", 1))
    if len(maps) > 1:
        echo("\n".join(loaded.titles))
    heads = [title.partition(":")[0] for title in loaded.titles] if is_model(embedding) else ["value"]
    echo("\n" + score_table({head: each.by_line for head, each in zip(heads, results, strict=True)}))
    if output is not None:
        _write_scores(output, results, loaded.titles, rows=len(ids), of=n)
        echo(f"\nWrote the scores to {output}.")
    if per_point is not None:
        _write_points(per_point, results[-1].evaluation, some, force)
        echo(f"\nWrote the scores of each point to {per_point}.")


def _check_files(protocol: str, output: Path | None, per_point: Path | None, *, force: bool, read: list[str]) -> None:
    from dre.cli.data import path_of
    from dre.io.writers import FORMATS, check_writable
    from dre.metrics.inputs import check_choice

    files = [path_of(name) for name in read]
    with as_usage_error():
        check_choice("--protocol", protocol, PROTOCOLS)
        if output is not None:
            check_writable(output, [".json"], force=force, read=files)
        if per_point is not None:
            check_writable(per_point, [suffix for suffix in FORMATS if suffix != FOR_CELLS], force=force, read=files)


def _parse_metric(name: str | None, keywords: str | None) -> RowMetric | None:
    """The metric of the options; None if they name none."""
    from dre.data.metric import row_metric

    if name is None:
        if keywords is not None:
            raise UsageError(f"--metric-kwds {keywords}: add the metric that it is for, as in --metric minkowski")
        return None
    with as_usage_error():
        return row_metric(name, parse_metric_kwds(keywords))


def _parse_sample(text: str) -> int | None:
    if text == ALL:
        return None
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdigit() or int(digits) == 0:
        raise UsageError(f"--sample {text}: expected a number of rows, or {ALL}")
    return int(digits)


def _check_sample(ids: Any, n: int, k: int, per_point: Path | None) -> None:
    from dre.metrics.inputs import check_k

    with as_usage_error():
        check_k(k, len(ids))
    if per_point is not None and len(ids) < n and per_point.suffix.lower() == WITHOUT_NAMES:
        raise UsageError(
            f"--per-point {per_point}: only {len(ids):,} of {n:,} rows are scored, and {WITHOUT_NAMES} has no column to name "
            f"them; write .csv or .parquet, or pass --sample {ALL}"
        )


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of a map: with the first label, and those that need labels with each of them."""

    evaluation: Evaluation
    by_label: dict[str, dict[str, float]]

    @property
    def by_line(self) -> dict[str, float]:
        """Scores by the line of the table that shows them, such as "silhouette, cell_type"."""
        lines = {f"{name}, {label}": value for label, scores in self.by_label.items() for name, value in scores.items()}
        of_labels = {name for scores in self.by_label.values() for name in scores}
        return {**lines, **{name: value for name, value in self.evaluation.items() if name not in of_labels}}


def _score(rows: Any, embedding: Any, classes: dict[str, Any], options: dict[str, Any]) -> _Scores:
    from dre.metrics import evaluate as score
    from dre.metrics.evaluation import CLASS_METRICS, class_scores

    if not classes:
        return _Scores(score(rows, embedding, **options), {})
    first, *others = classes
    result = score(rows, embedding, classes[first], **options)
    by_label = {first: {each.name: result[each.name] for each in CLASS_METRICS if each.name in result}}
    if others:
        by_label |= class_scores(rows, embedding, {name: classes[name] for name in others}, **options)
    return _Scores(result, by_label)


def _which_rows(scored: int, labeled: int, n: int) -> str:
    if scored < labeled:
        return f" (of {labeled:,}{' that have a label' if labeled < n else ''}, evenly spaced)"
    return f" (of {n:,}, those that have a label)" if labeled < n else ""


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """One line per metric and label, one column per map; descriptions move to lines of their own if there is no room."""
    names = [name for name in next(iter(scores.values())) if _metric_of(name) in DESCRIPTIONS]
    name_width = max(map(len, names))
    head = " " * name_width + "".join(f"{title:>{VALUE_WIDTH}s}" for title in scores) + f"{'best':>{BEST_WIDTH}s}"
    lines = []
    for name in names:
        best, description = DESCRIPTIONS[_metric_of(name)]
        values = "".join(f"{_format(each[name]):>{VALUE_WIDTH}s}" for each in scores.values())
        lines.append((f"{name:<{name_width}s}{values}{best:>{BEST_WIDTH}d}", description))
    width = max(len(line) + 2 + len(description) for line, description in lines)
    separator = "  " if width <= shutil.get_terminal_size().columns else "\n    "
    return "\n".join([head, *(f"{line}{separator}{description}" for line, description in lines)])


def _metric_of(line: str) -> str:
    return line.partition(", ")[0]


def _format(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"


def _write_scores(path: Path, results: list[_Scores], titles: list[str], *, rows: int, of: int) -> None:
    from dre.compare.record import provenance, write_json

    maps = [
        {"map": title, "scores": dict(each.evaluation), "by_label": each.by_label}
        for title, each in zip(titles, results, strict=True)
    ]
    how, labels = results[-1].evaluation.title, list(results[-1].by_label)
    write_json(path, {**provenance(), "rows": rows, "of": of, "how": how, "labels": labels, "maps": maps})


def _write_points(path: Path, result: Evaluation, source: Source, force: bool) -> None:
    import numpy as np

    from dre.io.writers import OutputSpec, open_sink

    values = np.stack(list(result.per_point.values()), axis=1).astype(np.float32)
    rows, columns = values.shape
    about = OutputSpec(rows, columns, names=source.names, columns=tuple(result.per_point))
    with open_sink(path, about, force=force) as sink:
        sink.write(values)
