"""Rows but for one of their columns, which is a label and no feature; what is read piece by piece stays so."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.rows import Rows, is_rows, rows_at_once

Array = np.ndarray[Any, Any]


def apart(rows: Any, column: int) -> tuple[Any, Array]:
    """The other columns, and that one (n,): whole numbers as such, since 3.0 is a measurement and 3 a class."""
    if is_rows(rows):
        labels = _read(rows, column)
        return Without(rows, column), _classes(labels)
    others = rows[:, [i for i in range(rows.shape[1]) if i != column]]
    if scipy.sparse.issparse(rows):
        return others, _classes(rows[:, [column]].toarray()[:, 0])
    return np.ascontiguousarray(others), _classes(np.asarray(rows[:, column]))


class Without:
    """Rows that are read through it lack the column."""

    def __init__(self, rows: Rows, column: int) -> None:
        n, d = rows.shape
        self.shape = (n, d - 1)
        self._rows = rows
        self._kept = torch.tensor([i for i in range(d) if i != column])

    def read(self, start: int, stop: int) -> Tensor:
        return self._but(self._rows.read(start, stop))

    def take(self, ids: Tensor) -> Tensor:
        return self._but(self._rows.take(ids))

    def _but(self, x: Tensor) -> Tensor:
        return x.index_select(1, self._kept.to(x.device))


def _read(rows: Rows, column: int) -> Array:
    n, step = rows.shape[0], rows_at_once(rows.shape[1:])
    pieces = [rows.read(start, min(n, start + step))[:, column].cpu().numpy() for start in range(0, n, step)]
    return np.concatenate(pieces)


def _classes(labels: Array) -> Array:
    return labels.astype(np.int64) if bool((labels == np.floor(labels)).all()) else labels
