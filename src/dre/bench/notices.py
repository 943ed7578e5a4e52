"""What one should know of a table before it is mapped: a column that was left out, and one that outweighs all others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dre.rows import chunks
from dre.sources.text_table import Table

Array = np.ndarray[Any, Any]
MOST = 0.9  # of the variance: distances beyond are those of one column


def notices(table: Table) -> list[str]:
    """One line each; most tables have none."""
    found = []
    if table.named_rows:
        found.append("the first column has no name: it was taken for the names of the rows, and left out")
    if table.values.ndim == 2 and table.values.dtype.kind in "biuf":
        share = _shares(table.values)
        column = int(np.argmax(share))
        if len(share) > 1 and share[column] > MOST:
            name = repr(table.columns[column]) if table.columns else str(column + 1)
            found.append(
                f"column {name} holds {math.floor(100 * share[column])} % of the variance: the map will show little else; "
                "leave it out or scale the columns"
            )
    return found


def _shares(X: Array) -> Array:
    """Of each column in the variance of all, (d,); not numbers where that of all is zero, or no number."""
    with np.errstate(all="ignore"):
        mean = sum((part.sum(0) for part in chunks(X)), np.zeros(X.shape[1])) / len(X)
        squares: Array = sum((np.square(part - mean).sum(0) for part in chunks(X)), np.zeros(X.shape[1]))
        return np.asarray(squares / squares.sum())
