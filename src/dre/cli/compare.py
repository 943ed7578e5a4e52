"""``dre compare``: methods side by side on a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre.baselines import NAMES
from dre.cli.completion import several_of
from dre.cli.data import Data, Device, Force, Labels
from dre.cli.wrong_use import WrongUseError, refusing


def compare(
    data: Data,
    labels: Labels = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            autocompletion=several_of(NAMES),
            help=f"Between commas, of {', '.join(NAMES)}.",
            show_default="pca,umap,open-tsne,dre",
        ),
    ] = "",
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The picture: .png, .pdf, .svg or another; the scores go beside it as .json.",
        ),
    ] = Path("comparison.png"),
    test_size: Annotated[float, typer.Option(metavar="SHARE", help="Of the rows, that is held out and scored.")] = 0.25,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the split and of all methods.")] = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Fit several methods to your data, and see them side by side.

    All learn from the same rows, and are scored on the same held-out ones. Prints a table of scores and seconds, and draws the
    maps; that of dre also as it was before its recursion. A method that fails, or is not installed, is named, and the others
    go on.

    **Examples:**

    - `dre compare cells.npy`

    - `dre compare cells.csv --labels types.csv -o cells.pdf`

    - `dre compare iris.csv --labels species`

    - `dre compare digits --labels digit --methods pca,umap,dre,parametric-tsne`

    - `dre compare cells.h5ad:obsm/X_pca --labels cell_type --test-size 0.5`
    """
    from dre.atomic import atomic_write
    from dre.cli.data import file_of, labelled, opened
    from dre.compare.notices import notices
    from dre.compare.record import provenance, write
    from dre.compare.run import check_methods, check_split, usual_methods
    from dre.compare.run import compare as run
    from dre.io.writers import check_writable
    from dre.plot.look import pyplot
    from dre.runtime import resolve_device

    pyplot().switch_backend("Agg")  # nothing is shown, so that no display is needed
    with refusing():
        names = check_methods([name.strip() for name in methods.split(",") if name.strip()] or usual_methods())
        _check_picture(output)
        beside = output.with_suffix(".json")
        read = [file_of(data), None if labels is None else file_of(labels)]
        for path in (output, beside):
            check_writable(path, [path.suffix.lower()], force=force, read=read)
        resolve_device(device)
    source, known = labelled(opened(data), labels)
    with refusing():
        check_split(test_size, source.rows.shape[0])
    for notice in notices(source.rows, source.columns):
        typer.echo(f"dre: {notice}", err=True)
    found = run(
        source.rows,
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
    with atomic_write(output) as part:
        found.picture().savefig(part, dpi=120)
    write(beside, {**provenance(), **told})
    typer.echo(f"\nThe maps are in {output}, the scores in {beside}.")


def _check_picture(path: Path) -> None:
    """Whether such a picture can be written: one of a letter is, to nowhere."""
    import io

    from matplotlib.figure import Figure

    if not path.suffix:
        raise WrongUseError(f"--output {path}: expected a picture, such as {path.name or 'comparison'}.png")
    try:
        trial = Figure()
        trial.text(0, 0, "a")
        trial.savefig(io.BytesIO(), format=path.suffix[1:].lower())
    except Exception as problem:
        reason = str(problem).partition("(")[0].strip()
        raise WrongUseError(f"--output {path} can't be drawn: {reason}; use .png, .pdf or .svg") from problem
