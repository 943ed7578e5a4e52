"""What one should know of rows before they are mapped: that one column outweighs all others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dre.data.rows import chunks

Array = np.ndarray[Any, Any]
MOST = 0.9  # of the variance: distances beyond are those of one column


def notices(rows: Any, columns: list[str] | None = None) -> list[str]:
    """One line each; most rows have none, and those that are no array are not looked at."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "biuf":
        return []
    share = _shares(rows)
    column = int(np.argmax(share))
    if len(share) < 2 or not share[column] > MOST:
        return []
    name = repr(columns[column]) if columns else str(column + 1)
    return [
        f"column {name} holds {math.floor(100 * share[column])} % of the variance: the map will show little else; "
        "leave it out or scale the columns"
    ]


def _shares(X: Array) -> Array:
    """Of each column in the variance of all, (d,); not numbers where that of all is zero, or no number."""
    with np.errstate(all="ignore"):
        mean = sum((part.sum(0) for part in chunks(X)), np.zeros(X.shape[1])) / len(X)
        squares: Array = sum((np.square(part - mean).sum(0) for part in chunks(X)), np.zeros(X.shape[1]))
        return np.asarray(squares / squares.sum())
