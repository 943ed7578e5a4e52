"""Some of the columns of rows: features by the names that a model knows, a label apart. Rows that are a stream stay one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.cli.wrong_use import WrongUseError
from dre.data.rows import Rows, chunk_length, is_rows
from dre.io.readers.source import Source, summarize_names

if TYPE_CHECKING:
    from dre.cli.map import OpenedMap
    from dre.model.estimator import DRE

Array = np.ndarray[Any, Any]
BESIDE = 50  # columns that are no features, at most, that are told of the rows


def remember(model: DRE, source: Source) -> None:
    """The names of the columns that a model was fitted to: it finds them again in other tables."""
    if source.columns is not None:
        model.feature_names_in_ = np.array(source.columns, dtype=object)


def features(model: DRE, source: Source, colour: str | None = None, *, tell: bool = True) -> Source:
    """What the model was fitted to, by the names of the columns; what else a table holds is told of its rows.

    Where the model knows no names, a column by which points are coloured is left out if that leaves as many as it takes.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None and source.columns and colour in source.columns and len(source.columns) == model.n_features_in_ + 1:
        names = [name for name in source.columns if name != colour]
    if names is None or source.columns is None or list(names) == source.columns:
        _check_width(model, source)
        return source
    number = {name: i for i, name in enumerate(source.columns)}
    missing = [name for name in names if name not in number]
    if missing:
        raise WrongUseError(f"DATA has not all columns that the model was fitted to: without {summarize_names(missing)}")
    if len(number) < len(source.columns):
        raise WrongUseError("DATA has several columns of one name, and others than the model was fitted to: give them names")
    kept = [number[name] for name in names]
    known = set(names)
    others = sorted((name for name in source.columns if name not in known), key=lambda name: name != colour)
    beside = columns(source, others[:BESIDE]) if tell else {}
    return replace(source, rows=chosen(source.rows, kept), columns=list(names), metadata={**beside, **source.metadata})


def _check_width(model: DRE, source: Source) -> None:
    wide = int(np.prod(source.rows.shape[1:]))
    if source.rows.shape[1] != model.n_features_in_:
        raise WrongUseError(f"DATA has rows of {wide:,} values, and the model was fitted to others: pass rows of the same kind")


def columns(source: Source | OpenedMap, names: list[str]) -> dict[str, Array]:
    """The values of these columns, read at one go."""
    if not names:
        return {}
    assert source.columns is not None
    values = _values(source.rows, [source.columns.index(name) for name in names])
    return {name: as_classes(each) for name, each in zip(names, values.T, strict=True)}


def apart(source: Source, name: str) -> tuple[Source, Array]:
    """The other columns, and that one (n,)."""
    assert source.columns is not None
    number = source.columns.index(name)
    kept = [i for i in range(len(source.columns)) if i != number]
    rest = replace(source, rows=chosen(source.rows, kept), columns=[source.columns[i] for i in kept])
    return rest, columns(source, [name])[name]


def chosen(rows: Any, columns: list[int]) -> Any:
    if is_rows(rows):
        return Chosen(rows, columns)
    some = rows[:, columns]
    return some if scipy.sparse.issparse(rows) else np.ascontiguousarray(some)


class Chosen:
    """Rows that are read through it have these columns alone."""

    def __init__(self, rows: Rows, columns: list[int]) -> None:
        self.shape = (rows.shape[0], len(columns))
        self._rows, self._columns = rows, torch.tensor(columns)

    def read(self, start: int, stop: int) -> Tensor:
        return self._of(self._rows.read(start, stop))

    def take(self, ids: Tensor) -> Tensor:
        return self._of(self._rows.take(ids))

    def _of(self, x: Tensor) -> Tensor:
        return x.index_select(1, self._columns.to(x.device))


def _values(rows: Any, columns: list[int]) -> Array:
    """Of these columns, (n, columns)."""
    if not is_rows(rows):
        some = rows[:, columns]
        return np.asarray(some.toarray() if scipy.sparse.issparse(some) else some)
    n, step = rows.shape[0], chunk_length(rows.shape[1:])
    pieces = [rows.read(start, min(n, start + step))[:, columns].cpu().numpy() for start in range(0, n, step)]
    return np.concatenate(pieces)


def as_classes(labels: Array) -> Array:
    """Whole numbers as such: 3.0 is a measurement and 3 a class."""
    return labels.astype(np.int64) if bool((labels == np.floor(labels)).all()) else labels
