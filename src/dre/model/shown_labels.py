"""The labels by which a fitted model is colored in a notebook. They live as long as the object, and are not saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.device_array import to_host
from dre.data.subsample import evenly_spaced_ids

Array = np.ndarray[Any, Any]
MOST_POINTS = 10_000  # of the map


def shown_labels(y: Any, n: int) -> Array | None:
    """Return the labels of the rows that are shown, of n in all; None if y is not one number, date or text for each row.

    A fit ignores y unless a loss reads it, so that y may be anything.

    >>> shown_labels(["a", "b", "a"], 3).tolist(), shown_labels([[1, 2], [3, 4]], 2)
    (['a', 'b', 'a'], None)
    """
    if y is None:
        return None
    try:
        values = np.asarray(to_host(y, "y"))
    except (TypeError, ValueError, RuntimeError):
        return None
    if values.shape != (n,) or values.dtype.kind == "c":
        return None
    if values.dtype.kind == "O":
        values = np.array([value if isinstance(value, str) or value is None else str(value) for value in values], dtype=object)
    chosen: Array = values[evenly_spaced_ids(n, MOST_POINTS)]
    return chosen.copy()
