"""Maps of the same rows laid over each other: turned, mirrored and sized as a whole, which changes nothing in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.procrustes import align_stages

Array = np.ndarray[Any, Any]


def aligned(maps: list[Array]) -> list[Array]:
    """Each turned to lie over the next, and all as large as the last, which stays as it is; float64.

    >>> over = aligned([np.array([[0.0, 2], [0, 0], [2, 0]]), np.array([[1.0, 0], [0, 0], [0, 1]])])
    >>> bool(np.allclose(over[0], over[1]))
    True
    """
    return align_stages([each.astype(np.float64) for each in maps], scale="match")
