"""Maps of the same rows laid over each other: turned, mirrored and sized as a whole, which changes nothing in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.stages import turned

Array = np.ndarray[Any, Any]


def aligned(maps: list[Array]) -> list[Array]:
    """Each turned to lie over the next, and all as large as the last, which stays as it is; float64.

    >>> over = aligned([np.array([[0.0, 2], [0, 0], [2, 0]]), np.array([[1.0, 0], [0, 0], [0, 1]])])
    >>> bool(np.allclose(over[0], over[1]))
    True
    """
    last = maps[-1].astype(np.float64)
    middle, size = last.mean(0), _size(last)
    return [_sized(each, size) + middle for each in turned([*(each.astype(np.float64) for each in maps[:-1]), last])]


def _sized(places: Array, size: float) -> Array:
    own = _size(places)
    centred: Array = places - places.mean(0)
    return centred * (size / own) if own else centred


def _size(places: Array) -> float:
    return float(np.sqrt(((places - places.mean(0)) ** 2).sum()))
