"""``dre fit``: fit a model to a file, save it and print a summary."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.echo import echo
from dre.cli.exit_codes import INTERRUPTED
from dre.cli.fit_checkpoints import begin_checkpoints, check_checkpoints, end_checkpoints
from dre.cli.fit_summary import summary
from dre.cli.options import (
    AUGMENTS,
    BATCHES,
    ENCODERS,
    OPTIMIZERS,
    RECIPES,
    AllowExternal,
    Categories,
    Columns,
    Data,
    Decimal,
    Device,
    Drop,
    Force,
    Id,
    Metric,
    MetricKwds,
    Missing,
    SeveralLabels,
    Size,
    Standardize,
    Threads,
    Vector,
    as_usage_error,
    complete_chain,
    complete_one,
    parse_metric_kwds,
    read_options,
)

if TYPE_CHECKING:
    from dre.io.readers import Source

OVERRIDES, SAVING, VIEWS = "Override the recipe", "Checkpoints", "See the training"  # panels of the help
FOLDER = "folder"  # of images, in their metadata
LABELS = {"label", "labels", "class", "target", "cluster", "y"}  # usual names of a column of labels


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Model file to write, .safetensors.")],
    recipe: Annotated[
        str, typer.Option(metavar="NAME", autocompletion=complete_one(RECIPES), help=f"One of {', '.join(RECIPES)}.")
    ] = "auto",
    n_components: Annotated[int, typer.Option(metavar="N", min=1, help="Dimensions of the embedding.")] = 2,
    metric: Metric = "euclidean",
    metric_kwds: MetricKwds = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Fit a random sample of N rows, and embed the others by the network.",
            show_default="as many as time and memory allow",
        ),
    ] = None,
    standardize: Standardize = None,
    labels: SeveralLabels = None,
    embedding: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the embedding of DATA: .npy, .csv, .tsv (also .gz), .parquet, or .h5ad if DATA is one.",
        ),
    ] = None,
    device: Device = "auto",
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Random seed. With the same seed, the result is the same on the same CPU."),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", rich_help_panel=VIEWS, help="Write a page that follows the training, and ends as the explorer's."
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=VIEWS, help="HTML file of --watch.", show_default="the model's, with .html"
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open", rich_help_panel=VIEWS, help="Open the page of --watch in the browser.")
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=VIEWS,
            help="Write losses, scores and pictures of the map for TensorBoard.",
        ),
    ] = None,
    force: Force = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also print the recipe, and each stage as it begins and ends.")
    ] = False,
    threads: Threads = None,
    columns: Columns = None,
    drop: Drop = None,
    row_id: Id = None,
    categories: Categories = False,
    missing: Missing = "error",
    decimal: Decimal = None,
    vector: Vector = None,
    size: Size = None,
    allow_external: AllowExternal = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=SAVING,
            help="Write checkpoints to this folder. They are removed once the model is saved.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", rich_help_panel=SAVING, help="Continue from the last checkpoint, or begin if there is none."),
    ] = False,
    checkpoint_minutes: Annotated[
        float | None,
        typer.Option(metavar="M", min=0, rich_help_panel=SAVING, help="Time between two checkpoints.", show_default="5"),
    ] = None,
    perplexity: Annotated[
        float | None, typer.Option(metavar="P", rich_help_panel=OVERRIDES, help="Perplexity of every Gaussian affinity.")
    ] = None,
    n_neighbors: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, rich_help_panel=OVERRIDES, help="As in UMAP; without UMAP's loss it sets the perplexity."
        ),
    ] = None,
    min_dist: Annotated[
        float | None, typer.Option(metavar="D", min=0, rich_help_panel=OVERRIDES, help="As in UMAP, for recipes with its loss.")
    ] = None,
    recursions: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, rich_help_panel=OVERRIDES, help="How often affinities are recomputed from hidden layers."
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel=OVERRIDES,
            help="Stages of the training: 'x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15'.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel=OVERRIDES,
            autocompletion=complete_one(ENCODERS),
            help=f"Network, as 'mlp(512, depth=4)': {', '.join(ENCODERS)}.",
        ),
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel=OVERRIDES,
            autocompletion=complete_chain(AUGMENTS),
            help=f"Random changes in training, as 'noise(0.5)' or 'affine + flip': {', '.join(AUGMENTS)}.",
        ),
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            metavar="N|TEXT",
            rich_help_panel=OVERRIDES,
            autocompletion=complete_one(BATCHES),
            help=f"Rows in a step, or how they are sampled, as 'edges(1024)': {', '.join(BATCHES)}.",
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(metavar="R", rich_help_panel=OVERRIDES, help="Learning rate, the peak of a one-cycle policy."),
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel=OVERRIDES,
            autocompletion=complete_one(OPTIMIZERS),
            help="'adam(0.001, policy=constant, clip=1.0)'.",
        ),
    ] = None,
) -> None:
    """Fit a model to your data and save it.

    Prints the loss and the duration of each stage, then the trustworthiness and the continuity of the embedding. With labels,
    which are not used in training, also its 1-NN accuracy. Ctrl-C ends the training early and saves the model as it is; a
    second Ctrl-C stops at once and saves nothing. With --checkpoint, a fit that was killed or stopped goes on where it was.

    **Examples:**

    - `dre fit cells.csv -o cells.safetensors`

    - `dre fit cells.h5ad:obsm/X_pca -o cells.safetensors --labels cell_type`

    - `dre fit photos/ -o photos.safetensors --embedding embedding.csv`

    - `dre fit table.csv -o table.safetensors --standardize`

    - `dre fit embeddings.npy -o embeddings.safetensors --metric cosine`

    - `dre fit mnist -o mnist.safetensors --recipe fast --seed 0`

    - `dre fit cells.csv -o cells.safetensors --metric minkowski --metric-kwds p=3`

    - `dre fit big.npy -o big.safetensors --checkpoint run1 --resume`

    - `dre fit cells.csv -o cells.safetensors --watch --open`

    - `dre fit cells.csv -o cells.safetensors --tensorboard runs/cells`

    - `dre fit x.npy -o x.safetensors --schedule 'x: gaussian(50) -> kl * 40'`
    """
    from dre.cli.classes import split_classes
    from dre.cli.data import choose_standardize, model_rows, open_data, output_spec, path_of, set_feature_names
    from dre.cli.map import MODEL, overwritten
    from dre.cli.watch import FitViews, check_view_options
    from dre.compare.data_warnings import without_data_warnings
    from dre.io.writers import check_writable, open_sink
    from dre.model.checkpoint import CheckpointError
    from dre.model.estimator import DRE
    from dre.runtime.ranks import Ranks

    ranks = Ranks.current()
    overrides: dict[str, Any] = {
        "perplexity": perplexity,
        "n_neighbors": n_neighbors,
        "min_dist": min_dist,
        "recursions": recursions,
        "schedule": schedule,
        "encoder": encoder,
        "augment": augment,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "optimizer": optimizer,
    }
    with as_usage_error():
        check_writable(output, [MODEL], force=force, read=[path_of(data)])
        if embedding is not None:
            check_writable(embedding, force=force, read=[output, *overwritten(embedding, data)])
        options = replace(
            read_options(columns, drop, labels or [], row_id, categories, missing, decimal, vector, size, allow_external),
            standardize=standardize,
        )
        check_checkpoints(checkpoint, checkpoint_minutes, resume=resume, force=force)
        _check_options(device, metric, metric_kwds, overrides)
        page = check_view_options(
            output, watch, page, show, tensorboard, data=path_of(data), n_components=n_components, resume=resume, force=force
        )
    source, classes = split_classes(open_data(data, options), labels or [])
    _hint_at_labels(source, are_given=bool(labels))
    model = DRE(
        recipe,
        n_components=n_components,
        metric=metric,
        metric_kwds=parse_metric_kwds(metric_kwds),
        sample=sample,
        **overrides,
        standardize=choose_standardize(source, standardize, metric),
        missing=missing if source.preparation is not None and missing != "drop" else "error",
        device=device,
        random_state=seed,
        verbose=verbose or None,
    )
    with as_usage_error():
        _check_plan(model, tuple(source.rows.shape))
        ranks.on_first(lambda: begin_checkpoints(checkpoint, resume=resume))
    minutes = 5.0 if checkpoint_minutes is None else checkpoint_minutes
    views = FitViews(
        source,
        classes,
        page=page,
        show=show,
        tensorboard=tensorboard,
        may_overwrite=force or resume,
        is_first=ranks.is_first,
    )
    # Units: the user knows of them. A checkpoint that does not fit is refused before anything is computed.
    with views.failing(), without_data_warnings() if standardize is False else nullcontext(), as_usage_error(CheckpointError):
        rows = model_rows(source.preparation, source.rows)
        model.fit(rows, observers=views.observers, checkpoint=checkpoint, resume=resume, checkpoint_minutes=minutes)
    if not ranks.is_first:
        return
    with views.failing():
        set_feature_names(model, source)
        model.save(output, force=force)
        if checkpoint is not None:
            end_checkpoints(checkpoint, interrupted=model.interrupted_)
        if embedding is not None:
            with open_sink(embedding, output_spec(source, n_components, data), force=force) as sink:
                sink.write(model.embedding_)
        try:
            echo(summary(model, source, next(iter(classes.items()), None)))
            views.finish(model)
        except KeyboardInterrupt:
            views.fail("The model is saved; Ctrl-C ended the making of this page.")
            what = "its scores" if page is None else "its scores and its page"
            echo(f"\ndre: the model is saved in {output}; Ctrl-C ended the computation of {what}", err=True)
            raise typer.Exit(INTERRUPTED) from None
    _say_saved({"model": output, "embedding": embedding, "page": page})


def _say_saved(files: dict[str, Path | None]) -> None:
    """Print which files were written."""
    saved = [f"the {what} to {file}" for what, file in files.items() if file is not None]
    echo(f"\nSaved {' and '.join(saved)}.")


def _hint_at_labels(source: Source, *, are_given: bool) -> None:
    """Print which features, or subfolders, may be labels."""
    for name in (name for name in source.columns or [] if name.strip().lower() in LABELS):
        echo(f"dre: the column {name!r} is used as a feature; if it holds labels, pass --labels {name}", err=True)
    if FOLDER in source.metadata and not are_given and len(source.rows.shape) > 2:
        echo(f"dre: the subfolders are kept as {FOLDER}; --labels {FOLDER} scores the map by them", err=True)


def _check_options(device: str, metric: str, metric_kwds: str | None, overrides: dict[str, Any]) -> None:
    """Check the device, the metric, and the texts and numbers of options before the rows are read, which may take a while."""
    from dre.data.metric import row_metric
    from dre.plan.overrides import parse_overrides
    from dre.runtime import resolve_device

    resolve_device(device)
    row_metric(metric, parse_metric_kwds(metric_kwds))
    parse_overrides(**overrides)


def _check_plan(model: Any, shape: tuple[int, ...]) -> None:
    """Build the recipe before the rows are read, so that a wrong option is reported at once."""
    from dre.data.metric import row_metric

    row_metric(model.metric, model.metric_kwds).check_standardize(model.standardize)
    model.plan(shape)
