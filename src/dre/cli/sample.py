"""Some of many rows, from end to end: enough to judge a map by, where all would take long."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def spread(n: int, most: int) -> Array:
    """Ids of at most so many of n rows, as far apart as can be."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))


def taken(rows: Any, ids: Array) -> Any:
    """These rows, of whatever kind all of them are."""
    import torch

    from dre.rows import is_rows

    return rows.take(torch.from_numpy(ids)).cpu().numpy() if is_rows(rows) else rows[ids]
