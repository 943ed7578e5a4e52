"""``dre explore``: write a map as an interactive HTML page."""

from __future__ import annotations

from dataclasses import replace
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

if TYPE_CHECKING:
    from dre.cli.map import LoadedMap
    from dre.io.readers import ReadOptions
    from dre.io.readers.source import Source

MAX_FEATURES = 20  # tables with more features do not offer them as colors


def explore(
    map_: Map,
    data: DataOfMap = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="HTML file to write.", show_default="MAP with .html"),
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Initial color of the points: a column, trust, cluster, or a file with one value per row.",
            show_default="labels or a category",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OTHER",
            help="Another map of the same rows, shown beside MAP: a model or a file of coordinates. Repeat it for more.",
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option(help="Add a column with the trustworthiness of each point, low where the map is distorted.")
    ] = True,
    neighbors: Annotated[
        bool, typer.Option(help="Keep the nearest rows in the data of each row, for up to 100,000 rows.")
    ] = True,
    clusters: Annotated[bool, typer.Option(help="Find and name the clusters of the map, if no column has labels.")] = True,
    thumbnails: Annotated[bool, typer.Option(help="Show the rows as images, if they are images.")] = True,
    image_shape: Annotated[
        str | None, typer.Option(metavar="HxW", help="Treat each row as a flattened image: 28x28, or 32x32x3.")
    ] = None,
    with_model: Annotated[
        bool,
        typer.Option(
            "--with-model", help="Put the model into the page, which then places new rows: dropped files, images, pasted rows."
        ),
    ] = False,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.", show_default="name of MAP")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    atlas: Annotated[
        bool, typer.Option("--atlas", help="Show the map in Embedding Atlas instead, for millions of points.")
    ] = False,
    device: Device = "auto",
    force: Force = False,
    threads: Threads = None,
    categories: MapCategories = False,
    decimal: Decimal = None,
    allow_external: AllowExternal = False,
) -> None:
    """Write a map as an interactive HTML page.

    The page is a single file that works offline. Pan, zoom, point at a row or pin it to see its neighbors, color by any
    column, filter, search, select points with a lasso and export them. For a model, a slider moves through the stages of the
    training. Maps with three components turn.

    **Examples:**

    - `dre explore cells.safetensors cells.h5ad:obsm/X_pca`

    - `dre explore fashion.safetensors fashion-mnist:all -o fashion.html --open`

    - `dre explore embedding.csv cells.csv --color type`

    - `dre explore digits.safetensors digits --image-shape 8x8`

    - `dre explore cells.safetensors cells.csv --beside umap.csv`

    - `dre explore cells.safetensors cells.csv --with-model`

    - `dre explore embedding.parquet --atlas`
    """
    from dre.cli.beside import load_beside
    from dre.cli.data import path_of
    from dre.cli.map import check_order
    from dre.explore import build_explorer, write_page
    from dre.io.writers import check_writable
    from dre.progress.activity import activity

    check_order("explore", map_, data)
    if with_model:
        _check_with_model(map_, atlas=atlas)
    reading = map_options(categories=categories, decimal=decimal, allow_external=allow_external)
    if atlas:
        _open_atlas(map_, data, output, reading, device)
        return
    target = output if output is not None else (path_of(map_) or Path(map_)).with_suffix(".html")
    with as_usage_error():
        read = [path_of(each) for each in (map_, data, *(beside or [])) if each is not None]
        check_writable(target, [".html"], force=force, read=read)
        images = thumbnails and (_parse_shape(image_shape) or True)
    loaded, source, column = _load(map_, data, color, images, reading, device)
    name = title or Path(map_).stem
    others = load_beside(beside or [], name, loaded, source, data, reading, device)
    _tell_components({name: loaded.embedding, **{other: stages[-1][1] for other, stages in others.items()}})
    metadata, color = page_metadata(loaded, column, color)
    page = build_explorer(
        list(zip(loaded.short_titles, loaded.stages, strict=True)),
        title=name,
        rows=loaded.rows,
        metric_rows=loaded.metric_rows,
        metric=loaded.metric,
        metadata=metadata,
        names=loaded.names,
        names_title="name" if source is None else source.names_title,
        row_numbers=None if loaded.dropped is None else loaded.dropped.kept.nonzero()[0],
        feature_names=loaded.columns,
        color=color,
        beside=others,
        trust=trust,
        neighbors=neighbors,
        clusters=clusters,
        images=images,
        model=loaded.model if with_model else None,
    )
    with activity("writing the page"):
        write_page(target, page, force=force)
    model_size = "" if page.model is None else f", of which the model takes {_megabytes(page.model.nbytes)}"
    echo(f"Wrote {target} ({_megabytes(target.stat().st_size)}{model_size}): open it in a browser.")
    if show:
        typer.launch(str(target))


def _check_with_model(map_: str, *, atlas: bool) -> None:
    from dre.cli.map import is_model

    if atlas:
        raise UsageError("--with-model puts the model into a page, and --atlas writes none: drop one of them")
    if not is_model(map_):
        raise UsageError(f"--with-model needs a model as MAP, a .safetensors file of `dre fit`; {map_} is none")


def _megabytes(size: int) -> str:
    """A size for people.

    >>> _megabytes(1_240_000), _megabytes(83_200)
    ('1.2 MB', '83 kB')
    """
    return f"{size / 1e6:.1f} MB" if size > 1e6 else f"{size / 1e3:.0f} kB"


def _load(
    map_: str, data: str | None, color: str | None, images: bool | tuple[int, ...], reading: ReadOptions, device: str
) -> tuple[LoadedMap, Source | None, str | None]:
    """The map, the rows of DATA, and the column of DATA, of the map or of a file that colors the points."""
    from dre.cli.map import check_color, is_model, load_map, open_rows
    from dre.explore.build import check_rows
    from dre.explore.cluster_column import CLUSTER
    from dre.explore.trust import TRUST

    source, model = open_rows(map_, data, reading, device)
    own = [] if source is None else [*source.metadata, *(source.columns or [])]
    column = None if color in (TRUST, CLUSTER) and color not in own else color
    if source is not None:
        with as_usage_error(ValueError, ImportError):
            check_rows(source.rows.shape[0], source.rows, images)
        if is_model(map_) and column is not None:
            check_color(column, source)
    loaded = load_map(map_, source, model, every_stage=True, color=column, allow_external=reading.allow_external)
    return loaded, source, column


def _tell_components(maps: dict[str, Any]) -> None:
    """Say which components of a map the page leaves out."""
    from dre.explore.build import axes_note

    for name, embedding in maps.items():
        note = axes_note(name, embedding.shape[1])
        if note is not None:
            echo(f"dre: {note}", err=True)


def page_metadata(loaded: LoadedMap, column: str | None, color: str | None) -> tuple[dict[str, Any], str | None]:
    """The metadata of the rows, for a narrow table its features as well; and the title of the column for the color."""
    import numpy as np

    from dre.cli.data import column_values
    from dre.cli.map import color_values

    columns = loaded.columns or []
    if loaded.preparation is not None:  # the columns of the table are metadata
        columns, own = [], loaded.preparation.columns or []
        hidden = set(own) - {column} if len(own) > MAX_FEATURES else set()
        loaded = replace(loaded, metadata=_with_gaps(loaded, hidden))
    features = column_values(loaded.rows, columns, columns if len(columns) <= MAX_FEATURES else [])
    features |= {name: np.where(loaded.filled[name], np.nan, features[name]) for name in features if name in loaded.filled}
    metadata = {**loaded.metadata, **features}
    if column is not None:
        color, values = color_values(column, loaded)
        metadata[color] = values
    return metadata, color


def _with_gaps(loaded: LoadedMap, hidden: set[str]) -> dict[str, Any]:
    """The metadata without some columns, and without the values that were filled in."""
    import numpy as np

    def lacking(name: str) -> Any:
        values, gaps = loaded.metadata[name], loaded.filled.get(name)
        return values if gaps is None else np.where(gaps, "" if values.dtype.kind in "OSU" else np.nan, values)

    return {name: lacking(name) for name in loaded.metadata if name not in hidden}


def _parse_shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) not in (2, 3) or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--image-shape {text}: expected HEIGHTxWIDTH, such as 28x28, or HEIGHTxWIDTHx3")
    return tuple(map(int, parts))


def _open_atlas(map_: str, data: str | None, output: Path | None, reading: ReadOptions, device: str) -> None:
    import tempfile

    from dre.cli.map import load_map, open_rows
    from dre.explore.atlas import atlas_command, show, write_table

    if output is not None:
        raise UsageError(f"--atlas opens the map and writes no page: drop -o {output}")
    try:
        command = atlas_command()
    except ImportError as problem:
        raise ImportError(f"{problem}; or drop --atlas") from problem
    loaded = load_map(map_, *open_rows(map_, data, reading, device), allow_external=reading.allow_external)
    if loaded.embedding.shape[1] > 2:
        echo(f"dre: {map_} has {loaded.embedding.shape[1]} components; Embedding Atlas shows the first two.", err=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "map.parquet")
        write_table(table, loaded.embedding, loaded.metadata, loaded.names)
        show(command, table)
