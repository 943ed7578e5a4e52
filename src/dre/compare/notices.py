"""Warnings about input data before an embedding: one column that dominates all distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dre.data.scaling import Scaling


def notices(rows: Any, columns: list[str] | None = None) -> list[str]:
    """Return warnings about the rows, one line each; rows other than numeric 2-D arrays are not examined."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "biuf":
        return []
    if len(rows) == 0 or (rows.dtype.kind == "f" and not np.isfinite(rows).all()):
        return []
    dominant = Scaling.fit(rows).dominant_column
    if dominant is None:
        return []
    column, share = dominant
    name = repr(columns[column]) if columns else str(column + 1)
    return [
        f"column {name} makes up {math.floor(100 * share)} % of all squared distances: the map will show little else; "
        "remove it or scale the columns"
    ]
