"""Evenly spaced samples of rows: enough to score or draw a map where all rows would take long."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.progress.activity import activity

Array = np.ndarray[Any, Any]
SCORED = 3000  # rows at most for scores shown beside other results: all rows would take longer than some fits
FEWEST = 20  # rows from which scores mean something


def evenly_spaced_ids(n: int, most: int) -> Array:
    """Return ids of at most ``most`` of n rows, evenly spaced from the first to the last.

    >>> evenly_spaced_ids(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, n - 1, min(most, n)).round().astype(np.int64))


def to_array(rows: Any, ids: Array | None = None) -> Array:
    """Return rows with these ids, or all, of an array, a sparse matrix or Rows as a dense array."""
    import torch

    from dre.data.rows import is_rows, read_all

    found: Any
    if is_rows(rows):
        with activity("reading rows"):
            found = read_all(rows) if ids is None else rows.take(torch.from_numpy(ids)).cpu().numpy()
    else:
        found = rows if ids is None else rows[ids]
        found = found.cpu() if isinstance(found, torch.Tensor) else found
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def vectors(rows: Any, ids: Array | None = None) -> Array:
    """Return them as float32 vectors (n, d): images are flattened."""
    found = to_array(rows, ids)
    return found.reshape(len(found), -1).astype(np.float32, copy=False)
