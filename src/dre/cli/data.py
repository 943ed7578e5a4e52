"""DATA: its rows, its labels, and columns selected by name. Rows that are read in chunks stay lazy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse

from dre.cli.echo import echo
from dre.cli.options import UsageError, as_usage_error, name_options
from dre.data.preparation import Prepared
from dre.data.rows import chunk_length, is_rows
from dre.data.table_preparation import TablePreparation
from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.readers.arrays import select_columns
from dre.io.readers.features import dropped_message
from dre.io.readers.labels import read_labels
from dre.io.readers.lazy_columns import merge_columns
from dre.io.readers.source import Source, summarize_names
from dre.io.writers import OutputSpec
from dre.progress.activity import activity

if TYPE_CHECKING:
    from dre.model.estimator import DRE

Array = np.ndarray[Any, Any]
Tell = Literal["all", "news", "none"]
MAX_EXTRA_COLUMNS = 50  # columns that are not features but are kept as metadata, at most


def open_data(data: str, options: ReadOptions | None = None, *, tell: Tell = "all") -> Source:
    """Open DATA and print the reader's messages: all, or news alone where an earlier command has printed the rest."""
    with as_usage_error(SourceError), activity(f"reading {data}"):
        source = open_source(data, options=options)
    lines = {"all": source.messages, "news": dropped_message(source.dropped), "none": []}
    for line in lines[tell]:
        echo(f"dre: {name_options(line)}", err=True)
    return source


def as_fitted(model: DRE, options: ReadOptions | None = None) -> ReadOptions:
    """Read the features that the model was fitted to, whatever else a table has; fill gaps and resize images as in the fit."""
    options, names, prepared = options or ReadOptions(), getattr(model, "feature_names_in_", None), model.preparation_
    table = prepared if isinstance(prepared, TablePreparation) and prepared.named else None
    fill = getattr(model, "fill_values_", {})
    if options.missing == "drop" and isinstance(prepared, TablePreparation) and not prepared.named:
        # an array, by position: the model would fill these gaps itself if their rows were not left out before
        fill = {str(i): each.fill for i, each in enumerate(prepared.encodings) if isinstance(each.fill, float)}
    return replace(
        options,
        features=() if names is None else list(names),
        fill=fill,
        preparation=table,
        row_shape=model.row_shape_,
    )


def model_rows(source_preparation: TablePreparation | None, rows: Any) -> Any:
    """Return rows of a source as a model takes them: the reader has prepared those of a table with categories."""
    return rows if source_preparation is None else Prepared(rows, source_preparation, are_rows=True)


def choose_standardize(source: Source, wanted: bool | None, metric: str = "euclidean") -> bool:
    """Whether to standardize: as asked; else if the columns of a table seem to have different units, which is then printed."""
    if source.preparation is not None:  # it knows the units
        return False
    if wanted is not None or source.mixed_units is None or metric != "euclidean":
        return bool(wanted)
    found = source.mixed_units.describe(source.columns)
    echo(f"dre: {found}, so the columns are standardized; --no-standardize keeps their units", err=True)
    return True


def path_of(data: str) -> Path | None:
    """The file that DATA names, without the part after the colon; None for the name of a dataset."""
    for name in (data, data.rpartition(":")[0]):
        if name and Path(name).expanduser().exists():
            return Path(name).expanduser()
    return None


def split_labels(source: Source, labels: str | None) -> tuple[Source, Any]:
    """Separate the features from the labels, which come from the metadata, from a column or from a file."""
    if labels is None:
        return source, None
    if labels in source.metadata:
        return source, source.metadata[labels]
    if source.columns is not None and labels in source.columns:
        return pop_column(source, labels)
    if Path(labels).expanduser().exists():
        return source, labels_from_file(labels, source)
    raise no_such_column("--labels", labels, [*source.metadata, *(source.columns or [])])


def labels_from_file(name: str, source: Source) -> Array:
    """The labels (n,) of a file with one for each row of DATA, also for those that lack values."""
    names = source.names if source.dropped is None else source.dropped.names
    with as_usage_error():
        return read_labels(Path(name).expanduser(), source.file_length, names)[source.file_rows]


def no_such_column(option: str, name: str, columns: list[str]) -> UsageError:
    return UsageError(f"{option} {name}: neither a column nor an existing file; columns: {summarize_names(columns)}")


def set_feature_names(model: DRE, source: Source) -> None:
    """Store in the model the names of its columns, so that they are found in other tables, and what fills their gaps."""
    if source.columns is not None and source.preparation is None:
        model.feature_names_in_ = np.array(source.columns, dtype=object)
    if source.fill:
        model.fill_values_ = dict(source.fill)


def match_columns(model: DRE, source: Source, color: str | None = None, *, keep_others: bool = True) -> Source:
    """Select the columns that the model was fitted to, by name; the other columns become metadata.

    A model without column names reads all columns, except the one for ``color`` if that leaves the expected number.
    """
    if source.preparation is not None:
        return source
    if isinstance(model.preparation_, TablePreparation) and model.preparation_.named:
        columns = summarize_names(list(model.feature_names_in_))
        raise UsageError(f"DATA is no table, and the model reads columns by name: {columns}. Pass a table with these columns")
    names = getattr(model, "feature_names_in_", None)
    if names is None and source.columns and color in source.columns and len(source.columns) == model.n_features_in_ + 1:
        names = [name for name in source.columns if name != color]
    if names is None or source.columns is None or list(names) == source.columns:
        _check_width(model, source)
        return source
    index = {name: i for i, name in enumerate(source.columns)}
    missing = [name for name in names if name not in index]
    if missing:
        raise UsageError(f"DATA lacks {len(missing):,} of the columns that the model was fitted to: {summarize_names(missing)}")
    if len(index) < len(source.columns):
        raise UsageError("DATA has duplicate column names, so the model's columns are ambiguous: rename the duplicates")
    known = set(names)
    others = sorted((name for name in source.columns if name not in known), key=lambda name: name != color)
    extra = column_values(source.rows, source.columns, others[:MAX_EXTRA_COLUMNS]) if keep_others else {}
    rows = select_columns(source.rows, [index[name] for name in names])
    metadata = merge_columns(extra, source.metadata)
    return replace(source, rows=rows, columns=list(names), metadata=metadata)


def _check_width(model: DRE, source: Source) -> None:
    if source.rows.shape[1] != model.n_features_in_:
        sizes = [" × ".join(f"{size:,}" for size in shape) for shape in (source.rows.shape[1:], model.row_shape_)]
        raise UsageError(f"DATA has rows of {sizes[0]} values; the model was fitted to rows of {sizes[1]}: pass such rows")


def output_spec(source: Source, components: int, data: str) -> OutputSpec:
    """Shape and names of the embedding of DATA. Rows that lack values are NaN, so that positions stay."""
    dropped = source.dropped
    return OutputSpec(
        source.file_length,
        components,
        names=source.names if dropped is None else dropped.names,
        source=path_of(data),
        names_title=source.names_title,
        kept=None if dropped is None else dropped.kept,
    )


def pop_column(source: Source, name: str) -> tuple[Source, Array]:
    """The source without one column, and the values of that column (n,)."""
    assert source.columns is not None
    position = source.columns.index(name)
    kept = [i for i in range(len(source.columns)) if i != position]
    rest = replace(source, rows=select_columns(source.rows, kept), columns=[source.columns[i] for i in kept])
    return rest, column_values(source.rows, source.columns, [name])[name]


def column_values(rows: Any, columns: list[str], names: list[str]) -> dict[str, Array]:
    """The values of the named columns, read in a single pass."""
    if not names:
        return {}
    values = _read_columns(rows, [columns.index(name) for name in names])
    return {name: as_classes(each) for name, each in zip(names, values.T, strict=True)}


def _read_columns(rows: Any, columns: list[int]) -> Array:
    if not is_rows(rows):
        selected = rows[:, columns]
        return np.asarray(selected.toarray() if scipy.sparse.issparse(selected) else selected)
    n, step = rows.shape[0], chunk_length(rows.shape[1:])
    chunks = [rows.read(start, min(n, start + step))[:, columns].cpu().numpy() for start in range(0, n, step)]
    return np.concatenate(chunks)


def as_classes(values: Array) -> Array:
    """Floats that are all integers become integers, which are drawn as classes and not on a scale."""
    return values.astype(np.int64) if bool((values == np.floor(values)).all()) else values
