"""Warnings about input data before an embedding: one column that dominates the variance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dre.data.rows import chunks

Array = np.ndarray[Any, Any]
MAX_SHARE = 0.9  # of the variance; beyond, distances are mostly those of one column


def notices(rows: Any, columns: list[str] | None = None) -> list[str]:
    """Return warnings about the rows, one line each; rows other than numeric 2-D arrays are not examined."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "biuf":
        return []
    share = _shares(rows)
    column = int(np.argmax(share))
    if len(share) < 2 or not share[column] > MAX_SHARE:
        return []
    name = repr(columns[column]) if columns else str(column + 1)
    return [
        f"column {name} holds {math.floor(100 * share[column])} % of the variance: the map will show little else; "
        "remove it or scale the columns"
    ]


def _shares(X: Array) -> Array:
    """Return the share of each column in the total variance, (d,); NaN where the total is zero or not finite."""
    with np.errstate(all="ignore"):
        mean = sum((part.sum(0) for part in chunks(X)), np.zeros(X.shape[1])) / len(X)
        squares: Array = sum((np.square(part - mean).sum(0) for part in chunks(X)), np.zeros(X.shape[1]))
        return np.asarray(squares / squares.sum())
