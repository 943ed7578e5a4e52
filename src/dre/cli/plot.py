"""``dre plot``: figures of a map, its stages, its distortion and its training."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.echo import echo
from dre.cli.options import (
    AllowExternal,
    DataOfMap,
    Decimal,
    Device,
    Force,
    Map,
    MapCategories,
    Threads,
    UsageError,
    as_usage_error,
    map_options,
)
from dre.progress.activity import activity
from dre.progress.counted import counted

if TYPE_CHECKING:
    from dre.cli.map import LoadedMap
    from dre.io.readers import ReadOptions

NO_COLOR = "none"


class PlotKind(StrEnum):
    map = "map"
    stages = "stages"
    shepard = "shepard"
    distortion = "distortion"
    history = "history"


class PlotStyle(StrEnum):
    light = "light"
    dark = "dark"


class LabelPlacement(StrEnum):
    auto = "auto"
    map = "map"
    legend = "legend"
    none = "none"


def plot(
    map_: Map,
    data: DataOfMap = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Figure to write: .png, .svg, .pdf.", show_default="MAP with .png"),
    ] = None,
    kind: Annotated[
        PlotKind,
        typer.Option(metavar="KIND", help="What to draw: map, stages, shepard, distortion or history."),
    ] = PlotKind.map,
    color: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Color of the points: a column, a file with one value per row, or none for gray.",
            show_default="labels, else a column of few values",
        ),
    ] = None,
    style: Annotated[PlotStyle, typer.Option(metavar="NAME", help="Background: light or dark.")] = PlotStyle.light,
    label_placement: Annotated[
        LabelPlacement,
        typer.Option(metavar="WHERE", help="Where the names of the classes go: auto, map, legend or none."),
    ] = LabelPlacement.auto,
    thumbnails: Annotated[bool, typer.Option(help="Draw the images of DATA at their coordinates.")] = False,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the figure.")] = "",
    size: Annotated[
        float | None, typer.Option(metavar="INCHES", min=1, max=60, help="Longer side of each map, or width of a diagram.")
    ] = None,
    device: Device = "auto",
    force: Force = False,
    threads: Threads = None,
    categories: MapCategories = False,
    decimal: Decimal = None,
    allow_external: AllowExternal = False,
) -> None:
    """Draw a map, its stages, its distortion or its training history.

    - map: the embedding. Beyond 100,000 rows it shows their density. Three components are drawn in pairs

    - stages: the embedding after each stage of a model, with scores

    - shepard: distances in the map against distances in the data

    - distortion: trustworthiness and continuity of each point

    - history: the loss of a model during training

    Stages, shepard and distortion need DATA. Scores are computed on at most 10,000 rows; the figure says so.

    **Examples:**

    - `dre plot embedding.csv`

    - `dre plot cells.safetensors cells.h5ad:obsm/X_pca --color cell_type -o cells.pdf`

    - `dre plot mnist.safetensors mnist:test --thumbnails --style dark`

    - `dre plot mnist.safetensors mnist:test --kind stages`

    - `dre plot embedding.npy cells.npy --kind distortion`

    - `dre plot cells.safetensors --kind history -o loss.svg`
    """
    from dre.cli.data import path_of
    from dre.cli.map import check_order, is_model, load_model
    from dre.io.writers import check_writable
    from dre.plot.save import SUFFIXES, save
    from dre.plot.style import pyplot

    check_order("plot", map_, data)
    target = output if output is not None else _default_output(map_, kind)
    with as_usage_error():
        check_writable(target, SUFFIXES, force=force, read=[path_of(map_), None if data is None else path_of(data)])
        _check_kind(kind, is_model(map_), data is not None, thumbnails)
    pyplot().switch_backend("Agg")  # needs no display
    reading = map_options(categories=categories, decimal=decimal, allow_external=allow_external)
    options = _FigureOptions(style.value, label_placement.value, title, size, device, reading)
    if kind is PlotKind.history:
        figure, content = _history(load_model(map_, device), options), "the loss"
    else:
        figure, content = _plot_rows(map_, data, kind, color, thumbnails, options)
    with activity("drawing"):
        save(figure, target, force=force)
    echo(f"Wrote {target}: {content}.")


@dataclass(frozen=True)
class _FigureOptions:
    """Options of all figures."""

    style: str
    label_placement: str
    title: str
    size: float | None
    device: str
    reading: ReadOptions


def _default_output(map_: str, kind: PlotKind) -> Path:
    from dre.cli.data import path_of

    path = path_of(map_) or Path(map_)
    return path.with_name(f"{path.stem}.png" if kind is PlotKind.map else f"{path.stem}-{kind}.png")


def _check_kind(kind: PlotKind, model: bool, data: bool, thumbnails: bool) -> None:
    if kind in (PlotKind.stages, PlotKind.history) and not model:
        raise UsageError(f"--kind {kind}: only a model has stages and a history; pass one written by `dre fit`")
    if kind in (PlotKind.shepard, PlotKind.distortion) and not data:
        raise UsageError(f"--kind {kind} compares the map with the embedded rows: add DATA after MAP")
    if thumbnails and kind is not PlotKind.map:
        raise UsageError(f"--thumbnails works with --kind map, not with --kind {kind}")
    if thumbnails and not data:
        raise UsageError("--thumbnails draws the embedded images: add DATA after MAP")


def _plot_rows(
    map_: str, data: str | None, kind: PlotKind, color: str | None, thumbnails: bool, options: _FigureOptions
) -> tuple[Any, str]:
    """The figure, and a phrase that describes its content."""
    from dre.cli.map import check_color, is_model, load_map, open_rows

    source, model = open_rows(map_, data, options.reading, options.device)
    if thumbnails and source is not None and len(source.rows.shape) < 3:
        raise UsageError(f"--thumbnails needs images, but DATA has rows of {counted(source.rows.shape[1], 'value')}")
    column = None if color == NO_COLOR else color
    if is_model(map_) and source is not None and column is not None:
        check_color(column, source)
    every_stage = kind is PlotKind.stages
    external = options.reading.allow_external
    loaded = load_map(map_, source, model, every_stage=every_stage, color=column, allow_external=external)
    _check_components(map_, loaded, kind, thumbnails)
    by, labels = _labels(color, loaded)
    colored = f", colored by {by}" if by and kind in (PlotKind.map, PlotKind.stages) else ""
    in_pairs = ", its three components in pairs" if _has_three(loaded) and kind is not PlotKind.shepard else ""
    with activity("drawing"):
        figure = _draw(kind, loaded, by, labels, thumbnails, options)
    return figure, f"{counted(len(loaded.embedding), 'row')}{in_pairs}{colored}"


def _has_three(loaded: LoadedMap) -> bool:
    return bool(loaded.embedding.shape[1] == 3)


def _check_components(map_: str, loaded: LoadedMap, kind: PlotKind, thumbnails: bool) -> None:
    count = loaded.embedding.shape[1]
    if kind is not PlotKind.shepard and count not in (2, 3):
        raise UsageError(
            f"{map_} has {counted(count, 'component')}, and a figure shows two or three: "
            "fit with --n-components 2 or 3, or pass a table with two of the columns"
        )
    if thumbnails and count == 3:
        raise UsageError(f"--thumbnails needs a map of two components, but {map_} has three")


def _draw(kind: PlotKind, loaded: LoadedMap, by: str, labels: Any, thumbnails: bool, options: _FigureOptions) -> Any:
    from dre.plot import pairs, scatter, stages

    if kind is PlotKind.shepard:
        return _shepard(loaded, options)
    if kind is PlotKind.distortion:
        return _distortion(loaded, options)
    shared: dict[str, Any] = {"title": options.title, "style": options.style, "label_placement": options.label_placement}
    shared["label_name"] = by
    if kind is PlotKind.map and _has_three(loaded):
        return pairs(loaded.embedding, labels, size=options.size or 4.5, **shared)
    if kind is PlotKind.map:
        images = loaded.rows if thumbnails else None
        return scatter(loaded.embedding, labels, images=images, size=options.size or 7.0, **shared).figure
    scored = {"X": loaded.metric_rows, "metric": loaded.metric}
    return stages(loaded.stages, labels, titles=loaded.short_titles, size=options.size or 4.0, **scored, **shared)


def _shepard(loaded: LoadedMap, options: _FigureOptions) -> Any:
    from dre.data.subsample import evenly_spaced_ids, to_array
    from dre.metrics import shepard_diagram
    from dre.plot import shepard
    from dre.plot.stages import MAX_SCORED, sample_note

    ids = evenly_spaced_ids(len(loaded.embedding), MAX_SCORED)
    rows = to_array(loaded.metric_rows, ids)
    diagram = shepard_diagram(rows, loaded.embedding[ids], metric=loaded.metric, device=options.device)
    title = "\n".join(
        line for line in (options.title or "Shepard diagram", sample_note(len(ids), len(loaded.embedding))) if line
    )
    return _resize(shepard(diagram, title=title, style=options.style).figure, options.size)


def _distortion(loaded: LoadedMap, options: _FigureOptions) -> Any:
    from dre.data.subsample import evenly_spaced_ids, to_array
    from dre.metrics import continuity, trustworthiness
    from dre.plot import distortion
    from dre.plot.fonts import set_figure_fonts
    from dre.plot.stages import MAX_SCORED
    from dre.plot.style import get_style

    ids = evenly_spaced_ids(len(loaded.embedding), MAX_SCORED)
    rows, embedding = to_array(loaded.metric_rows, ids), loaded.embedding[ids]
    how: dict[str, Any] = {"metric": loaded.metric, "per_point": True, "device": options.device}
    scores = {"trustworthiness": trustworthiness, "continuity": continuity}
    per_point = {name: score(rows, embedding, **how) for name, score in scores.items()}
    note = "" if len(ids) == len(loaded.embedding) else f"{len(ids):,} of {len(loaded.embedding):,} rows"
    figure = distortion(embedding, per_point, note=note, style=options.style)
    if options.title:
        figure.suptitle(options.title, color=get_style(options.style).text)
        set_figure_fonts(figure)
    return _resize(figure, None if options.size is None else 2 * options.size)


def _history(model: Any, options: _FigureOptions) -> Any:
    from dre.plot import history

    return history(model.history_, model.schedule_, title=options.title, style=options.style, size=options.size)


def _resize(figure: Any, width: float | None) -> Any:
    """Scale the figure to this width in inches."""
    if width is not None:
        figure.set_size_inches(figure.get_size_inches() * width / figure.get_figwidth())
    return figure


def _labels(color: str | None, loaded: LoadedMap) -> tuple[str, Any]:
    """The title and the values that color the map: those of --color, or the column that a person would choose."""
    from dre.cli.map import color_values
    from dre.explore.choices import choose_color
    from dre.explore.columns import make_column

    if color == NO_COLOR and NO_COLOR not in loaded.metadata:
        return "", None
    if color is not None:
        return color_values(color, loaded)
    chosen = choose_color([make_column(name, values) for name, values in loaded.metadata.items()])
    if chosen is not None:
        return chosen, loaded.metadata[chosen]
    return next(((name, values) for name, values in loaded.metadata.items() if _is_quantity(name, values)), ("", None))


def _is_quantity(name: str, values: Any) -> bool:
    """Whether a column holds dates, or numbers that do not just number the rows."""
    from dre.plot.kinds import DATE, NUMBER, kind_of, known_values

    kind = kind_of(values, name)
    if kind != NUMBER:
        return kind == DATE
    known = known_values(values)
    are_integers = bool((known == known.round()).all())
    return not (are_integers and len(set(known.tolist())) == len(values))
