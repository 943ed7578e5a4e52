"""Some of the rows, where all of them would take minutes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.rows import is_rows

Array = np.ndarray[Any, Any]
MOST = 10_000  # rows that are scored for a picture


def some_of(n: int, most: int = MOST) -> Array:
    """The ids of up to so many of n rows, drawn at random, always the same ones, in order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def taken(rows: Any, ids: Array) -> Array:
    """These rows of an array, of a sparse matrix or of a stream, as an array."""
    if is_rows(rows):
        import torch

        return rows.take(torch.from_numpy(ids)).cpu().numpy()
    found = rows[ids]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def told(shown: int, n: int) -> str:
    """How many of the rows a picture speaks of; nothing where it is all of them."""
    return "" if shown == n else f"of {shown:,} of {n:,} rows"
