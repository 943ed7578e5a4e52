"""``dre compare``: several methods side by side on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre.baselines import NAMES
from dre.cli.echo import echo
from dre.cli.options import (
    AllowExternal,
    Categories,
    Columns,
    Data,
    Decimal,
    Device,
    Drop,
    Force,
    Labels,
    Metric,
    Missing,
    Size,
    Standardize,
    Threads,
    UsageError,
    Vector,
    as_usage_error,
    complete_several,
    read_options,
    split_names,
)
from dre.cli.plot import PlotStyle


def compare(
    data: Data,
    labels: Labels = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            autocompletion=complete_several(NAMES),
            help=f"Comma-separated, from {', '.join(NAMES)}.",
            show_default="pca,umap,open-tsne,dre",
        ),
    ] = "",
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Figure to write: .png, .pdf, .svg or another format. The scores go to a .json file of the same name.",
        ),
    ] = Path("comparison.png"),
    test_size: Annotated[float, typer.Option(metavar="SHARE", help="Share of the rows to hold out and score.")] = 0.25,
    metric: Metric = "euclidean",
    standardize: Standardize = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed of the split and of all methods.")] = 0,
    style: Annotated[
        PlotStyle, typer.Option(metavar="NAME", help="Background of the figure: light or dark.")
    ] = PlotStyle.light,
    device: Device = "auto",
    force: Force = False,
    threads: Threads = None,
    columns: Columns = None,
    drop: Drop = None,
    categories: Categories = False,
    missing: Missing = "error",
    decimal: Decimal = None,
    vector: Vector = None,
    size: Size = None,
    allow_external: AllowExternal = False,
) -> None:
    """Fit several methods to your data and compare them.

    All methods are fitted to the same rows and scored on the same held-out rows. Prints a table of scores and times, and
    draws the maps; that of dre also before its first recursion. A method that fails or is not installed is reported and
    skipped.

    **Examples:**

    - `dre compare cells.npy`

    - `dre compare cells.csv --labels types.csv -o cells.pdf`

    - `dre compare iris.csv --labels species --standardize`

    - `dre compare digits --labels digit --methods pca,umap,dre,parametric-tsne`

    - `dre compare embeddings.npy --metric cosine`

    - `dre compare cells.h5ad:obsm/X_pca --labels cell_type --test-size 0.5`
    """
    import numpy as np

    from dre.atomic import atomic_write
    from dre.cli.data import choose_standardize, open_data, path_of, split_labels
    from dre.compare.record import provenance, write_json
    from dre.compare.run import check_methods, check_split, default_methods
    from dre.compare.run import compare as run
    from dre.data.metric import row_metric
    from dre.data.subsample import to_array
    from dre.io.writers import check_writable
    from dre.metrics.inputs import has_label
    from dre.plot.style import pyplot
    from dre.progress.counted import agreeing, counted
    from dre.progress.display import say
    from dre.runtime import resolve_device

    pyplot().switch_backend("Agg")  # needs no display
    with as_usage_error():
        names = check_methods(split_names(methods) or default_methods())
        _check_format(output)
        scores_file = output.with_suffix(".json")
        read = [path_of(data), None if labels is None else path_of(labels)]
        for path in (output, scores_file):
            check_writable(path, [path.suffix.lower()], force=force, read=read)
        resolve_device(device)
    options = read_options(
        columns, drop, [labels] if labels else [], None, categories, missing, decimal, vector, size, allow_external
    )
    source, known = split_labels(open_data(data, options), labels)
    rows = source.rows
    if known is not None and not (labeled := has_label(known)).all():
        count = int((~labeled).sum())
        echo(f"dre: {counted(count, 'row', 'have')} no label and {agreeing(count, 'are')} left out", err=True)
        rows, known = to_array(rows, np.flatnonzero(labeled)), known[labeled]
    standardized = choose_standardize(source, standardize, metric)
    with as_usage_error():
        row_metric(metric).check_standardize(standardized)
        check_split(test_size, rows.shape[0])
    comparison = run(
        rows,
        known,
        label_name=None if labels is None else Path(labels).name,
        methods=names,
        test_size=test_size,
        metric=metric,
        standardize=standardized,
        feature_names=source.columns,
        random_state=seed,
        device=device,
        log=say,
    )
    echo(str(comparison))
    counts = {"rows": comparison.dataset.train.rows.shape[0], "test_rows": comparison.dataset.test.rows.shape[0]}
    results = {
        "seed": seed,
        "test_size": test_size,
        "metric": metric,
        "standardize": standardized,
        **counts,
        "results": comparison.to_records(),
        "failed": comparison.failed,
    }
    with atomic_write(output) as part:
        comparison.figure(style.value).savefig(part, dpi=150)
    write_json(scores_file, {**provenance(), **results})
    echo(f"\nWrote the maps to {output} and the scores to {scores_file}.")


def _check_format(path: Path) -> None:
    """Fail before the fits if matplotlib cannot write this format: draw a letter into memory."""
    import io

    from matplotlib.figure import Figure

    if not path.suffix:
        raise UsageError(f"--output {path}: expected a figure, such as {path.name or 'comparison'}.png")
    try:
        trial = Figure()
        trial.text(0, 0, "a")
        trial.savefig(io.BytesIO(), format=path.suffix[1:].lower())
    except Exception as problem:
        reason = str(problem).partition("(")[0].strip()
        raise UsageError(f"--output {path} cannot be written: {reason}; use .png, .pdf or .svg") from problem
