"""``dre explore``: a map as one page that opens in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.data import Device, Force
from dre.cli.map import DataOfMap, Map
from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.cli.map import OpenedMap

NARROW = 20  # features up to which each can colour the points


def explore(
    map_: Map,
    data: DataOfMap = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The page, .html.", show_default="MAP with .html"),
    ] = None,
    colour: Annotated[
        str | None,
        typer.Option(metavar="COLUMN|FILE", help="What colours points at first: a column, trust, or a file of values."),
    ] = None,
    trust: Annotated[
        bool, typer.Option(help="A column that shows where the map lies: how far each point's neighbours can be trusted.")
    ] = True,
    thumbnails: Annotated[bool, typer.Option(help="The images of the rows, where they are images.")] = True,
    images: Annotated[str | None, typer.Option(metavar="HxW", help="Rows are images of this size: 28x28, or 32x32x3.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What stands above it.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    atlas: Annotated[bool, typer.Option("--atlas", help="Open the map in Embedding Atlas: for millions of points.")] = False,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """One page of HTML to look into a map: it needs no network, and can be passed on.

    Move, zoom, point at a row to see it, colour by any column, search, draw a loop around points and export them. Of a model, a
    slider goes through its stages: how the recursion moved the points, and what it gave.

    **Examples:**

    - `dre explore cells.safetensors cells.h5ad:obsm/X_pca`

    - `dre explore fashion.safetensors fashion-mnist:all -o fashion.html --open`

    - `dre explore places.csv cells.csv --colour type`

    - `dre explore digits.safetensors digits --images 8x8`

    - `dre explore places.parquet --atlas`
    """
    from dre.cli.colour import check_colour, colour_of
    from dre.cli.data import file_of, opened
    from dre.cli.map import is_model, map_of
    from dre.explore import explorer, write_page
    from dre.explore.built import TRUST, check_rows
    from dre.io.writers import check_writable

    if atlas:
        _atlas(map_, data, output, device)
        return
    target = output if output is not None else (file_of(map_) or Path(map_)).with_suffix(".html")
    own = None if colour == TRUST else colour
    with refusing():
        check_writable(target, [".html"], force=force, read=[file_of(map_), None if data is None else file_of(data)])
        pictured = thumbnails and (_size(images) or True)
    source = None if data is None else opened(data)
    if source is not None:
        with refusing(ValueError, ImportError):
            check_rows(source.rows.shape[0], source.rows, pictured)
        if is_model(map_) and own is not None:
            check_colour(own, source)
    found = map_of(map_, source, device=device, every_stage=True, colour=own)
    told = columns_of(found)
    if own is not None:
        own, values = colour_of(own, found)
        told[own] = values
    shown = explorer(
        list(zip(found.titles, found.stages, strict=True)),
        title=title or Path(map_).stem,
        rows=found.rows,
        metadata=told,
        names=found.names,
        colour=own or colour,
        trust=trust,
        images=pictured,
    )
    write_page(target, shown)
    size = target.stat().st_size
    typer.echo(f"{target}, {f'{size / 1e6:.1f} MB' if size > 1e6 else f'{size / 1e3:.0f} kB'}: open it in a browser.")
    if show:
        typer.launch(str(target))


def columns_of(found: OpenedMap) -> dict[str, Any]:
    """What is told of the rows, and of a narrow table its features too."""
    from dre.cli.columns import columns

    names = found.columns or []
    return {**found.metadata, **columns(found, names if len(names) <= NARROW else [])}


def _size(said: str | None) -> tuple[int, ...] | None:
    if said is None:
        return None
    parts = said.lower().replace("×", "x").split("x")
    if len(parts) not in (2, 3) or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--images {said}: expected HEIGHTxWIDTH, such as 28x28, or HEIGHTxWIDTHx3")
    return tuple(map(int, parts))


def _atlas(map_: str, data: str | None, output: Path | None, device: str) -> None:
    import tempfile

    from dre.cli.map import open_map
    from dre.explore.atlas import atlas_command, show, write_table

    if output is not None:
        raise WrongUseError("--atlas shows the map and writes no page: leave out -o")
    command = atlas_command()
    found = open_map(map_, data, device=device)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "map.parquet")
        write_table(table, found.places, found.metadata, found.names)
        show(command, table)
