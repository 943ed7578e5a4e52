"""``dre plot``: a map as a picture, its stages, where it lies, and how it was learned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.data import Device, Force
from dre.cli.map import DataOfMap, Map
from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.cli.map import OpenedMap
    from dre.io.readers import Source

NO_COLOUR = "none"


class Kind(StrEnum):
    map = "map"
    stages = "stages"
    shepard = "shepard"
    lies = "lies"
    history = "history"


class Ground(StrEnum):
    light = "light"
    dark = "dark"


class Names(StrEnum):
    auto = "auto"
    labels = "labels"
    legend = "legend"
    none = "none"


def plot(
    map_: Map,
    data: DataOfMap = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The picture: .png, .svg or .pdf.", show_default="MAP with .png"),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(help="The map; after each stage; distances; where it lies; the loss. All but map and history need DATA."),
    ] = Kind.map,
    colour: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE", help="A column, or a file with a value per row; none for grey.", show_default="a column"
        ),
    ] = None,
    style: Annotated[Ground, typer.Option(help="The ground.")] = Ground.light,
    names: Annotated[Names, typer.Option(help="Of classes: in the map, or beside it.")] = Names.auto,
    thumbnails: Annotated[bool, typer.Option(help="Draw the images of DATA where they lie in the map.")] = False,
    title: Annotated[str, typer.Option(metavar="TEXT", help="What stands above.")] = "",
    size: Annotated[
        float | None, typer.Option(metavar="INCHES", min=1, max=60, help="The width of a map, or of a diagram.")
    ] = None,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Draw a map, of a hundred rows or of ten million.

    Beyond 100,000 rows a map shows how many there are in each place. Scores of a picture are those of up to 10,000 rows, which
    it says.

    **Examples:**

    - `dre plot places.csv`

    - `dre plot cells.safetensors cells.h5ad:obsm/X_pca --colour cell_type -o cells.pdf`

    - `dre plot mnist.safetensors mnist:test --thumbnails --style dark`

    - `dre plot mnist.safetensors mnist:test --kind stages`

    - `dre plot places.npy cells.npy --kind lies`

    - `dre plot cells.safetensors --kind history -o loss.svg`
    """
    from dre.cli.data import file_of, opened
    from dre.cli.map import is_model, load_model
    from dre.io.writers import check_writable
    from dre.plot.save import SUFFIXES, save
    from dre.plot.style import pyplot

    target = output if output is not None else _beside(map_, kind)
    with refusing():
        check_writable(target, SUFFIXES, force=force, read=[file_of(map_), None if data is None else file_of(data)])
        _check_kind(kind, is_model(map_), data is not None, thumbnails)
    pyplot().switch_backend("Agg")  # nothing is shown, so that no display is needed
    look = _Look(style.value, names.value, title, size, device)
    if kind is Kind.history:
        figure, told = _history(load_model(map_, device), look), "the loss"
    else:
        figure, told = _of_rows(map_, None if data is None else opened(data), kind, colour, thumbnails, look)
    save(figure, target, force=force)
    typer.echo(f"{target}: {told}.")


@dataclass(frozen=True)
class _Look:
    """How it shall look, and where it is computed."""

    style: str
    names: str
    title: str
    size: float | None
    device: str


def _beside(map_: str, kind: Kind) -> Path:
    from dre.cli.data import file_of

    path = file_of(map_) or Path(map_)
    return path.with_name(f"{path.stem}.png" if kind is Kind.map else f"{path.stem}-{kind}.png")


def _check_kind(kind: Kind, model: bool, data: bool, thumbnails: bool) -> None:
    if kind in (Kind.stages, Kind.history) and not model:
        raise WrongUseError(f"--kind {kind}: only a model has stages and a history; pass one that `dre fit` wrote")
    if kind in (Kind.shepard, Kind.lies) and not data:
        raise WrongUseError(f"--kind {kind} compares the map with the rows that were mapped: name them too, behind MAP")
    if thumbnails and kind is not Kind.map:
        raise WrongUseError("--thumbnails are for --kind map")
    if thumbnails and not data:
        raise WrongUseError("--thumbnails draws the images that were mapped: name them too, behind MAP")


def _of_rows(
    map_: str, source: Source | None, kind: Kind, colour: str | None, thumbnails: bool, look: _Look
) -> tuple[Any, str]:
    """The figure, and what it shows."""
    from dre.cli.colour import check_colour
    from dre.cli.map import is_model, map_of

    if thumbnails and source is not None and len(source.rows.shape) < 3:
        raise WrongUseError(f"--thumbnails needs images, and DATA has rows of {source.rows.shape[1]:,} values")
    wanted = None if colour == NO_COLOUR else colour
    if is_model(map_) and source is not None and wanted is not None:
        check_colour(wanted, source)
    found = map_of(map_, source, device=look.device, every_stage=kind is Kind.stages, colour=wanted)
    n = len(found.places)
    by, labels = _labels(colour, found)
    told = f"{n:,} rows" + (f", coloured by {by}" if by and kind in (Kind.map, Kind.stages) else "")
    return _drawn(kind, found, labels, thumbnails, look), told


def _drawn(kind: Kind, found: OpenedMap, labels: Any, thumbnails: bool, look: _Look) -> Any:
    from dre.plot import scatter, stages

    if kind is Kind.map:
        images = found.rows if thumbnails else None
        how: dict[str, Any] = {"title": look.title, "style": look.style, "names": look.names, "size": look.size or 7.0}
        return scatter(found.places, labels, images=images, **how).figure
    if kind is Kind.stages:
        titles = [" · ".join(part.strip() for part in title.split(":")[:2]) for title in found.titles]
        how = {"title": look.title, "style": look.style, "names": look.names, "size": look.size or 4.0}
        return stages(found.stages, labels, X=found.rows, titles=titles, **how)
    return _shepard(found, look) if kind is Kind.shepard else _lies(found, look)


def _shepard(found: OpenedMap, look: _Look) -> Any:
    from dre.data.subsample import evenly_spaced_ids, to_array
    from dre.metrics import shepard_diagram
    from dre.plot import shepard
    from dre.plot.stages import MAX_SCORED, sample_note

    ids = evenly_spaced_ids(len(found.places), MAX_SCORED)
    diagram = shepard_diagram(to_array(found.rows, ids), found.places[ids], device=look.device)
    title = "\n".join(line for line in (look.title or "Shepard diagram", sample_note(len(ids), len(found.places))) if line)
    return _sized(shepard(diagram, title=title, style=look.style).figure, look.size)


def _lies(found: OpenedMap, look: _Look) -> Any:
    from dre.data.subsample import evenly_spaced_ids, to_array
    from dre.metrics import continuity, trustworthiness
    from dre.plot import distortion
    from dre.plot.stages import MAX_SCORED, sample_note
    from dre.plot.style import get_style

    ids = evenly_spaced_ids(len(found.places), MAX_SCORED)
    rows, places = to_array(found.rows, ids), found.places[ids]
    measures = {"trustworthiness": trustworthiness, "continuity": continuity}
    per_point = {name: measure(rows, places, per_point=True, device=look.device) for name, measure in measures.items()}
    figure = distortion(places, per_point, note=sample_note(len(ids), len(found.places)), style=look.style)
    if look.title:
        figure.suptitle(look.title, color=get_style(look.style).ink)
    return _sized(figure, None if look.size is None else 2 * look.size)


def _history(model: Any, look: _Look) -> Any:
    from dre.plot import history

    return history(model.history_, model.schedule_, title=look.title, style=look.style, size=look.size)


def _sized(figure: Any, width: float | None) -> Any:
    """The same picture, so many inches wide."""
    if width is not None:
        figure.set_size_inches(figure.get_size_inches() * width / figure.get_figwidth())
    return figure


def _labels(colour: str | None, found: OpenedMap) -> tuple[str, Any]:
    """What colours the map, and its name: what was said, or without that the first column that tells rows apart."""
    if colour == NO_COLOUR and NO_COLOUR not in found.metadata:
        return "", None
    if colour is None:
        return next(((name, values) for name, values in found.metadata.items() if _tells_apart(values)), ("", None))
    from dre.cli.colour import colour_of

    return colour_of(colour, found)


def _tells_apart(values: Any) -> bool:
    """Not the same for all, and no name or number of each row."""
    from dre.plot.colors import MAX_COLORS, Categorical, Continuous, color_by

    found = color_by(values, len(values))
    if isinstance(found, Continuous):
        whole = (found.values == found.values.round()).all()
        return not (whole and len(set(found.values.tolist())) == len(found.values))
    return isinstance(found, Categorical) and 2 <= len(found.names) <= MAX_COLORS and len(found.names) < len(values)
