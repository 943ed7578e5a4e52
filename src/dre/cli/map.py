"""MAP: coordinates from a file, or the embedding that a model computes from DATA, after each of its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dre.cli.data import (
    Tell,
    as_fitted,
    column_values,
    labels_from_file,
    match_columns,
    model_rows,
    no_such_column,
    open_data,
    path_of,
)
from dre.cli.echo import echo
from dre.cli.options import UsageError, as_usage_error
from dre.data.distance_matrix import DistanceRows
from dre.data.metric import RowMetric, row_metric
from dre.data.rows import is_rows, read_all
from dre.data.subsample import to_array
from dre.data.table_preparation import TablePreparation
from dre.io.readers import ReadOptions
from dre.io.readers.features import COORDINATE
from dre.io.readers.lazy_columns import change_columns, merge_columns
from dre.io.readers.source import DroppedRows, Source, summarize_names
from dre.progress.counted import counted

if TYPE_CHECKING:
    from dre.model.estimator import DRE

Array = np.ndarray[Any, Any]
MODEL = ".safetensors"
CELLS, KEY = ".h5ad", "obsm/X_dre"  # where an .h5ad file holds the coordinates


@dataclass(frozen=True, eq=False)
class LoadedMap:
    """The embedding of rows, after one or several stages, and everything known about the rows."""

    stages: list[Array]  # (n, components) each: after every stage of a model, or the coordinates of a file
    titles: list[str]  # one per stage
    metadata: Mapping[str, Array] = field(default_factory=dict)  # (n,) each
    names: Array | None = None  # (n,), the names of the rows
    rows: Any = None  # the embedded rows, if there is DATA
    columns: list[str] | None = None  # the names of their columns, if there are any
    model: DRE | None = None  # if MAP is a model
    units: Callable[[Array], Array] | None = None  # rows as distances are measured between them, if not as they are
    aside: Source | None = None  # another matrix of the same rows, whose columns can color the map
    filled: dict[str, Array] = field(default_factory=dict)  # (n,) of bool each: whose values were missing, by column
    dropped: DroppedRows | None = None  # which rows of DATA, or else of the map, are left out, since they lack values
    preparation: TablePreparation | None = None  # which has made the rows of a table; its columns are among the metadata

    @property
    def embedding(self) -> Array:
        return self.stages[-1]

    @property
    def short_titles(self) -> list[str]:
        """One per stage: of a model its number and its rows, such as "stage 1 · features+h1"."""
        return [" · ".join(part.strip() for part in each.split(":")[:2]) if self.model else each for each in self.titles]

    @property
    def metric(self) -> RowMetric:
        """The metric between rows: that of the model, else Euclidean."""
        if self.model is None or self.model.metric is None:
            return row_metric("euclidean")
        return row_metric(self.model.metric, self.model.metric_kwds)

    @property
    def metric_rows(self) -> Any:
        """The rows in the units in which the model measures distances."""
        if self.metric.is_precomputed and self.rows is not None:
            with as_usage_error():
                return DistanceRows(self.rows)
        return self.rows if self.units is None or self.rows is None else MetricRows(self.units, self.rows)


class MetricRows:
    """`Rows` in the units in which distances are measured; standardizes what is read."""

    def __init__(self, units: Callable[[Array], Array], rows: Any) -> None:
        self.shape = (rows.shape[0], *units(to_array(rows, np.array([0]))).shape[1:])  # of genes fewer, as components
        self._units, self._rows = units, rows

    def read(self, start: int, stop: int) -> Tensor:
        return self.take(torch.arange(start, stop))

    def take(self, ids: Tensor) -> Tensor:
        return torch.from_numpy(self._units(to_array(self._rows, ids.cpu().numpy())))


def units_of(source: Source, standardize: bool | None = None) -> Callable[[Array], Array] | None:
    """A map of any method is judged between rows as `dre fit` would map them: standardized where units differ."""
    from dre.data.scaling import Scaling

    if not (source.mixed_units is not None if standardize is None else standardize):
        return None
    scaling = Scaling.fit(source.rows, standardize=True)
    return lambda rows: np.asarray(scaling.standardized(torch.from_numpy(rows).double()).numpy())


def is_model(name: str) -> bool:
    """Whether MAP names a model, by its suffix."""
    return name.lower().endswith(MODEL)


def check_order(command: str, name: str, data: str | None) -> None:
    """Fail if MAP and DATA are swapped: a model is never DATA."""
    if data is not None and is_model(data):
        raise UsageError(f"{data} is a model: MAP comes first, as in dre {command} {data} {name}")


def overwritten(output: Path, data: str) -> list[Path | None]:
    """Files that writing coordinates would destroy: DATA, unless it is an .h5ad file, which keeps its content."""
    return [] if output.suffix.lower() == CELLS else [path_of(data)]


@contextmanager
def reading_model(name: str | Path) -> Iterator[None]:
    """Report a missing or unreadable model file as a usage error."""
    if not Path(name).is_file():
        raise UsageError(f"{name} does not exist or is not a file: pass a model written by `dre fit`")
    with as_usage_error():
        yield


def load_model(name: str | Path, device: str = "auto") -> DRE:
    """Load a model onto a device; a missing or damaged file is a usage error."""
    from dre.model.estimator import DRE

    with reading_model(name):
        return DRE.load(name, device=None if device == "auto" else device)


def open_rows(
    name: str, data: str | None, options: ReadOptions, device: str = "auto", *, tell: Tell = "news"
) -> tuple[Source | None, DRE | None]:
    """Open DATA with the columns that a model was fitted to, if MAP is one; also return the model."""
    if is_model(name) and options.categories:
        raise UsageError(
            f"--categories is for files of coordinates; {name} is a model, which knows its columns: drop the option"
        )
    model = load_model(name, device) if is_model(name) else None
    if data is None:
        if options.categories or options.decimal:
            option = "--categories" if options.categories else "--decimal"
            raise UsageError(f"{option} is for the columns of DATA: add DATA after MAP, or drop the option")
        return None, model
    return open_data(data, options if model is None else as_fitted(model, options), tell=tell), model


def load_map(
    name: str,
    source: Source | None = None,
    model: DRE | None = None,
    *,
    every_stage: bool = False,
    color: str | None = None,
    standardize: bool | None = None,
    allow_external: bool = False,
) -> LoadedMap:
    """Load MAP; a model embeds the rows of ``source``, after its last stage or after every stage.

    ``color`` may name a column of the source that is not a feature of the model. A model knows whether its rows are
    standardized; ``standardize`` says so of a file, and None finds out.
    """
    if model is None:
        return _from_file(name, source, standardize, allow_external=allow_external)
    if source is None:
        raise UsageError(f"{name} is a model and needs rows to embed: add DATA, as in {name} rows.csv")
    return _from_model(model, match_columns(model, source, color), every_stage)


def _from_model(model: DRE, source: Source, every_stage: bool) -> LoadedMap:
    if model.metric is None:
        echo("dre: the metric of the model is a function, which is not saved: distances between rows are Euclidean", err=True)
    last = len(model.stages_) - 1
    kept = [i for i, weights in enumerate(model.stages_) if weights is not None or i == last]
    kept = kept if every_stage else kept[-1:]
    rows = model_rows(source.preparation, source.rows)
    stages = [model.transform(rows, stage=None if i == last else i) for i in kept]
    titles = [f"stage {i}: {model.schedule_[i]}" for i in kept]
    found = LoadedMap(stages, titles, source.metadata, source.names, source.rows, source.columns, model)

    def units(rows: Array) -> Array:
        return model.metric_rows(model_rows(source.preparation, rows))

    beside = replace(found, aside=source.aside, filled=source.filled, dropped=source.dropped)
    return replace(beside, units=units, preparation=source.preparation)


def _from_file(name: str, source: Source | None, standardize: bool | None, *, allow_external: bool) -> LoadedMap:
    embedding, table = read_coordinates(name, allow_external=allow_external)
    if source is None:
        return LoadedMap([embedding], [name], table.metadata, table.names, dropped=table.dropped)
    return replace(match_points(name, embedding, table, source), units=units_of(source, standardize))


def match_points(name: str, embedding: Array, table: Source, source: Source, *, whose: str = "DATA") -> LoadedMap:
    """The points of a map with the rows of DATA, by name if both have names, else by position.

    ``table`` knows the names and positions of the points, and ``whose`` names the owner of the rows in messages.
    """
    order = _order_by_name(name, table, source, whose)
    if order is None:
        order = _order_by_position(name, table, source, whose)
        if _are_names(source.names) and table.names is None:
            echo(f"dre: matched by position: {name} has no names of rows", err=True)
    metadata = merge_columns(change_columns(table.metadata, lambda values: values[order]), source.metadata)
    names = source.names if source.names is not None or table.names is None else table.names[order]
    found = LoadedMap([embedding[order]], [name], metadata, names, source.rows, source.columns)
    return replace(found, aside=source.aside, filled=source.filled, dropped=source.dropped, preparation=source.preparation)


def _order_by_position(name: str, table: Source, source: Source, whose: str) -> Array:
    """The points of a map in the order of the rows of DATA, where either may leave out rows that lack values."""
    points, rows = table.file_rows, source.file_rows
    if table.file_length != source.file_length:
        if len(points) != len(rows):
            sizes = f"{counted(len(points), 'point')} but {whose} has {counted(len(rows), 'row')}"
            raise UsageError(f"{name} has {sizes}: pass the embedded rows")
        return np.arange(len(rows))
    order = np.searchsorted(points, rows).clip(max=len(points) - 1)
    lacking = rows[points[order] != rows]
    if len(lacking):
        raise UsageError(
            f"{name} has no point for {len(lacking):,} of the {len(rows):,} rows of {whose}, first for row {lacking[0]}, "
            "counted from 0: pass the map of these rows"
        )
    return order


def _order_by_name(name: str, table: Source, source: Source, whose: str) -> Array | None:
    """The points of a map in the order of the rows of DATA, if both have names; else None."""
    if not _are_names(table.names) or not _are_names(source.names):
        return None
    assert table.names is not None
    assert source.names is not None
    position = {each: i for i, each in enumerate(table.names.tolist())}
    lacking = [each for each in source.names.tolist() if each not in position]
    if lacking:
        found = f"{name} has no point for {len(lacking):,} of the {len(source.names):,} rows of {whose}"
        if len(lacking) == len(source.names):
            names = f"{whose}: {lacking[0]!r}, {name}: {str(table.names[0])!r}"
            raise UsageError(f"{found}, since all names differ ({names}): pass a map with the same names, or without names")
        raise UsageError(f"{found}: {summarize_names(lacking, 3)}. Pass the map of these rows")
    return np.array([position[each] for each in source.names.tolist()])


def _are_names(names: Array | None) -> bool:
    """Whether names tell the rows apart, and are not just their numbers."""
    if names is None or len(set(names.tolist())) < len(names):
        return False
    return bool(names.tolist() != [str(i) for i in range(len(names))])


def read_coordinates(name: str, *, allow_external: bool = False) -> tuple[Array, Source]:
    """The columns dre1, dre2, … of a table, or all columns if there are two or three; other columns become metadata."""
    # rows that lacked values have no place
    options = ReadOptions(coordinates=True, missing="drop", allow_external=allow_external)
    source = open_data(f"{name}:{KEY}" if Path(name).suffix.lower() == CELLS else name, options, tell="none")
    values = np.asarray(read_all(source.rows) if is_rows(source.rows) else source.rows)
    columns = source.columns or []
    are_named = bool(columns) and all(map(COORDINATE.fullmatch, columns))  # the reader keeps these apart from other columns
    if not are_named and (values.ndim != 2 or not 2 <= values.shape[1] <= 3):
        shape = " × ".join(f"{size:,}" for size in values.shape)
        raise UsageError(
            f"{name} holds {shape} values, not two-dimensional coordinates: pass a file written by `dre transform`, or a "
            "table with the columns dre1 and dre2" + (f"; it has {summarize_names(columns)}" if columns else "")
        )
    return values.astype(np.float32), source


def _aside_columns(aside: Source | None) -> list[str]:
    return [] if aside is None else aside.columns or []


def check_color(name: str, source: Source) -> None:
    """Fail before the rows are embedded if nothing has this name."""
    columns = [*source.metadata, *(source.columns or [])]
    known = name in columns or name in _aside_columns(source.aside)
    if not known and not Path(name).expanduser().exists():
        raise no_such_column("--color", name, columns)


def color_values(name: str, loaded: LoadedMap) -> tuple[str, Any]:
    """The title and the values (n,) of a column, of the map or of DATA, or of a file with one value per row."""
    if name in loaded.metadata:
        return name, loaded.metadata[name]
    if loaded.columns is not None and name in loaded.columns:
        return name, column_values(loaded.rows, loaded.columns, [name])[name]
    if loaded.aside is not None and name in _aside_columns(loaded.aside):
        return name, column_values(loaded.aside.rows, _aside_columns(loaded.aside), [name])[name]
    if Path(name).expanduser().exists():
        rows = Source(loaded.embedding, names=loaded.names, dropped=loaded.dropped)
        return Path(name).name, labels_from_file(name, rows)
    raise no_such_column("--color", name, [*loaded.metadata, *(loaded.columns or [])])
