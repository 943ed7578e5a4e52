"""Maps of the same rows laid over each other: turned, mirrored and sized as a whole, which changes nothing in them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def aligned(maps: list[Array]) -> list[Array]:
    """Each as near to the next as turning, mirroring and one factor can bring it, from the last to the first; float64.

    >>> turned = aligned([np.array([[0.0, 2], [0, 0], [2, 0]]), np.array([[1.0, 0], [0, 0], [0, 1]])])
    >>> bool(np.allclose(turned[0], turned[1]))
    True
    """
    done = [_centred(maps[-1])]
    for places in reversed(maps[:-1]):
        own, goal = _centred(places), done[0]
        left, strengths, right = np.linalg.svd(own.T @ goal)
        size = (own**2).sum()
        done.insert(0, own @ (left @ right) * (strengths.sum() / size if size else 1.0))
    return done


def _centred(places: Array) -> Array:
    centred: Array = places.astype(np.float64) - places.mean(0, dtype=np.float64)
    return centred
