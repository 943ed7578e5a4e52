"""``dre explore``: write a map as an interactive HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.options import DataOfMap, Device, Force, Map, UsageError, as_usage_error

if TYPE_CHECKING:
    from dre.cli.map import LoadedMap

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
            help="Initial color of the points: a column, trust, or a file with one value per row.",
            show_default="a column of classes",
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option(help="Add a column with the trustworthiness of each point, low where the map is distorted.")
    ] = True,
    thumbnails: Annotated[bool, typer.Option(help="Show the rows as images, if they are images.")] = True,
    image_shape: Annotated[
        str | None, typer.Option(metavar="HxW", help="Treat each row as a flattened image: 28x28, or 32x32x3.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.", show_default="name of MAP")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    atlas: Annotated[
        bool, typer.Option("--atlas", help="Show the map in Embedding Atlas instead, for millions of points.")
    ] = False,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Write a map as an interactive HTML page.

    The page is a single file that works offline. Pan, zoom, hover over a point to see its row, color by any column, search,
    select points with a lasso and export them. For a model, a slider moves through the stages of the training.

    **Examples:**

    - `dre explore cells.safetensors cells.h5ad:obsm/X_pca`

    - `dre explore fashion.safetensors fashion-mnist:all -o fashion.html --open`

    - `dre explore embedding.csv cells.csv --color type`

    - `dre explore digits.safetensors digits --image-shape 8x8`

    - `dre explore embedding.parquet --atlas`
    """
    from dre.cli.data import path_of
    from dre.cli.map import check_color, color_values, is_model, load_map, open_rows
    from dre.explore import build_explorer, write_page
    from dre.explore.build import TRUST, check_rows
    from dre.io.writers import check_writable

    if atlas:
        _open_atlas(map_, data, output, device)
        return
    target = output if output is not None else (path_of(map_) or Path(map_)).with_suffix(".html")
    column = None if color == TRUST else color
    with as_usage_error():
        check_writable(target, [".html"], force=force, read=[path_of(map_), None if data is None else path_of(data)])
        images = thumbnails and (_parse_shape(image_shape) or True)
    source, model = open_rows(map_, data, device)
    if source is not None:
        with as_usage_error(ValueError, ImportError):
            check_rows(source.rows.shape[0], source.rows, images)
        if is_model(map_) and column is not None:
            check_color(column, source)
    loaded = load_map(map_, source, model, every_stage=True, color=column)
    metadata = _metadata(loaded)
    if column is not None:
        column, values = color_values(column, loaded)
        metadata[column] = values
    page = build_explorer(
        list(zip(loaded.titles, loaded.stages, strict=True)),
        title=title or Path(map_).stem,
        rows=loaded.rows,
        metric_rows=loaded.metric_rows,
        metric=loaded.metric,
        metadata=metadata,
        names=loaded.names,
        color=column or color,
        trust=trust,
        images=images,
    )
    write_page(target, page)
    size = target.stat().st_size
    typer.echo(f"Wrote {target} ({f'{size / 1e6:.1f} MB' if size > 1e6 else f'{size / 1e3:.0f} kB'}): open it in a browser.")
    if show:
        typer.launch(str(target))


def _metadata(loaded: LoadedMap) -> dict[str, Any]:
    """The metadata of the rows; for a narrow table its features as well."""
    from dre.cli.data import column_values

    columns = loaded.columns or []
    return {**loaded.metadata, **column_values(loaded.rows, columns, columns if len(columns) <= MAX_FEATURES else [])}


def _parse_shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) not in (2, 3) or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--image-shape {text}: expected HEIGHTxWIDTH, such as 28x28, or HEIGHTxWIDTHx3")
    return tuple(map(int, parts))


def _open_atlas(map_: str, data: str | None, output: Path | None, device: str) -> None:
    import tempfile

    from dre.cli.map import load_map, open_rows
    from dre.explore.atlas import atlas_command, show, write_table

    if output is not None:
        raise UsageError(f"--atlas opens the map and writes no page: drop -o {output}")
    try:
        command = atlas_command()
    except ImportError as problem:
        raise ImportError(f"{problem}; or drop --atlas") from problem
    loaded = load_map(map_, *open_rows(map_, data, device))
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "map.parquet")
        write_table(table, loaded.embedding, loaded.metadata, loaded.names)
        show(command, table)
