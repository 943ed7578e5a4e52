"""``dre compare``: methods side by side on a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def compare(
    data: Annotated[Path, typer.Argument(help="Rows: .npy, .npz (its first array) or .csv, (n, d) or images (n, h, w).")],
    labels: Annotated[
        Path | None, typer.Option(help="One label per row, in the same formats, or a text file with one a line.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Names of dre.baselines between commas; by default the usual ones installed.")
    ] = "",
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture; the scores go beside it as .json.")] = Path(
        "comparison.png"
    ),
    test_size: Annotated[float, typer.Option(help="The share of the rows that is held out.")] = 0.25,
    seed: Annotated[int, typer.Option(help="Of the split and of all methods.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda")] = "auto",
    force: Annotated[bool, typer.Option(help="Write over files that are there.")] = False,
) -> None:
    """Fit several methods to the same rows, score them on the same held-out rows, and draw the maps side by side.

    Example: `dre compare cells.npy --labels types.txt -o cells.png`
    """
    from dre.bench.compare import compare as run
    from dre.bench.record import provenance, write
    from dre.plot.look import pyplot

    pyplot()  # without matplotlib it is said now, and not after the fits
    beside = output.with_suffix(".json")
    for path in (output, beside):
        if path.exists() and not force:
            raise ValueError(f"{path} is there already: pass --force to write over it, or another --output")
    found = run(
        read_array(data),
        None if labels is None else read_labels(labels),
        methods=[name.strip() for name in methods.split(",") if name.strip()] or None,
        test_size=test_size,
        random_state=seed,
        device=device,
        say=lambda text: typer.echo(text, err=True),
    )
    typer.echo(str(found))
    output.parent.mkdir(parents=True, exist_ok=True)
    found.picture().savefig(output, dpi=110)
    write(beside, {**provenance(), "seed": seed, "test_size": test_size, "results": found.rows()})
    typer.echo(f"\nthe maps are in {output}, the scores in {beside}")


def read_array(path: Path) -> Any:
    import numpy as np

    if not path.is_file():
        raise ValueError(f"{path} is not there")
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as held:
            return held[held.files[0]]
    if path.suffix == ".csv":
        first = path.open().readline()
        return np.loadtxt(path, delimiter=",", skiprows=0 if _numbers(first) else 1)
    raise ValueError(f"{path}: expected .npy, .npz or .csv; save the rows with numpy.save")


def read_labels(path: Path) -> Any:
    import numpy as np

    if path.suffix in (".npy", ".npz"):
        return read_array(path)
    if not path.is_file():
        raise ValueError(f"{path} is not there")
    if path.suffix == ".json":
        return np.asarray(json.loads(path.read_text()))
    return np.array([line.strip() for line in path.read_text().splitlines() if line.strip()])


def _numbers(line: str) -> bool:
    try:
        [float(value) for value in line.split(",")]
    except ValueError:
        return False
    return True
