"""``dre compare``: methods side by side on a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre.baselines import NAMES


def compare(
    data: Annotated[
        Path, typer.Argument(help="Rows: .npy, .npz, .csv or .tsv, with a header or without; arrays may be images (n, h, w).")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(help="One label per row, for scores and colours: .npy, .npz, .csv, .tsv, .json, or text with one a line."),
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="The column of a .csv or .tsv that holds the labels, by its name; it is no feature then.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help=f"Between commas, of {', '.join(NAMES)}.", show_default="pca,umap,open-tsne,dre")
    ] = "",
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture: .png, .pdf, .svg or another; the scores go beside it as .json.")
    ] = Path("comparison.png"),
    test_size: Annotated[float, typer.Option(help="The share of the rows that is held out, and scored.")] = 0.25,
    seed: Annotated[int, typer.Option(help="Of the split and of all methods.")] = 0,
    device: Annotated[str, typer.Option(help="Where networks are trained: auto, cpu, cuda.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Which method makes the best map of your data? Fit several to the same rows, and see them on the same held-out ones.

    Prints a table of scores and seconds, and draws the maps side by side; that of dre also as it was before its recursion. A
    method that fails, or is not installed, is named, and the others go on.

    Examples:

    - `dre compare cells.npy`

    - `dre compare cells.csv --labels types.csv -o out/cells.pdf`

    - `dre compare iris.csv --label-column species`

    - `dre compare digits.npz --labels digits.npz --methods pca,umap,dre,parametric-tsne`

    - `dre compare cells.npy --labels types.txt --test-size 0.5 --seed 1 --force`
    """
    from dre.bench.compare import check_methods, usual_methods
    from dre.bench.compare import compare as run
    from dre.bench.notices import notices
    from dre.bench.own_data import read_labels, read_rows
    from dre.bench.record import provenance, write
    from dre.plot.look import pyplot

    if labels is not None and label_column is not None:
        raise ValueError("labels come from a file or from a column: pass --labels or --label-column, and not both")
    pyplot().switch_backend("Agg")  # nothing is shown, so that no display is needed
    names = check_methods([name.strip() for name in methods.split(",") if name.strip()] or usual_methods())
    _check_picture(output)
    beside = output.with_suffix(".json")
    _check_free([output, beside], [data, *([] if labels is None else [labels])], force)
    table = read_rows(data, label_column)
    known = table.labels if labels is None else read_labels(labels, len(table.values))
    for notice in notices(table):
        typer.echo(notice, err=True)
    output.parent.mkdir(parents=True, exist_ok=True)  # what can't be made is said now, and not after the fits
    found = run(
        table.values,
        known,
        methods=names,
        test_size=test_size,
        random_state=seed,
        device=device,
        say=lambda text: typer.echo(text, err=True),
    )
    typer.echo(str(found))
    counts = {"rows": found.dataset.train.rows.shape[0], "test_rows": found.dataset.test.rows.shape[0]}
    told = {"seed": seed, "test_size": test_size, **counts, "results": found.rows(), "failed": found.failed}
    write(beside, {**provenance(), **told})
    found.picture().savefig(output, dpi=120)
    typer.echo(f"\nThe maps are in {output}, the scores in {beside}.")


def _check_picture(path: Path) -> None:
    """Whether such a picture can be written: one of a letter is, to nowhere."""
    import io

    from matplotlib.figure import Figure

    if not path.suffix:
        raise ValueError(f"--output {path}: expected a picture, such as {path.name or 'comparison'}.png")
    try:
        trial = Figure()
        trial.text(0, 0, "a")
        trial.savefig(io.BytesIO(), format=path.suffix[1:].lower())
    except Exception as problem:
        reason = str(problem).partition("(")[0].strip()
        raise ValueError(f"--output {path} can't be drawn: {reason}; use .png, .pdf or .svg") from problem


def _check_free(written: list[Path], read: list[Path], force: bool) -> None:
    for path in written:
        if any(path.exists() and each.exists() and path.samefile(each) for each in read):
            raise ValueError(f"{path} is read, and would be written over: choose another --output")
        if path.is_dir():
            raise ValueError(f"{path} is a folder: choose another --output")
        if path.exists() and not force:
            raise ValueError(f"{path} is there already: pass --force to write over it, or another --output")
