"""Some of many rows, from end to end: enough to judge a map by, where all would take long."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SCORED = 3000  # rows at most for scores beside other work: all would take longer than some fits
FEWEST = 20  # rows of which scores say something


def evenly_spaced_ids(n: int, most: int) -> Array:
    """Ids of at most so many of n rows, as far apart as can be.

    >>> evenly_spaced_ids(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))


def to_array(rows: Any, ids: Array | None = None) -> Array:
    """These rows, or all of them, of an array, of a sparse matrix or of a stream, as an array."""
    import torch

    from dre.data.rows import is_rows, read_all

    found: Any
    if is_rows(rows):
        found = read_all(rows) if ids is None else rows.take(torch.from_numpy(ids)).cpu().numpy()
    else:
        found = rows if ids is None else rows[ids]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def vectors(rows: Any, ids: Array | None = None) -> Array:
    """The same as vectors of float32, (n, d): images flattened."""
    found = to_array(rows, ids)
    return found.reshape(len(found), -1).astype(np.float32, copy=False)
