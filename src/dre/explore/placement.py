"""Where maps lie on the screen: aligned to each other, in one unit square or cube. Their coordinates stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.metrics.procrustes import alignment

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Placement:
    """A linear map from coordinates to the screen: ``embedding @ matrix + offset``."""

    matrix: Array  # (c, c)
    offset: Array  # (c,)

    def __call__(self, embedding: Array) -> Array:
        placed: Array = embedding.astype(np.float64) @ self.matrix + self.offset
        return placed

    def within(self, low: Array, side: float) -> Placement:
        """The same, shifted and scaled such that ``low`` is 0 and ``low + side`` is 1."""
        return Placement(self.matrix / side, (self.offset - low) / side)

    def about(self) -> dict[str, Any]:
        return {"matrix": self.matrix.tolist(), "offset": self.offset.tolist()}


def place_maps(maps: Sequence[Sequence[Array]]) -> list[list[Placement]]:
    """Place all stages of all maps.

    The last stage of the first map is only shifted and scaled. Each other stage is turned, mirrored, shifted and scaled to lie
    over the next one, and the last stage of another map over that of the first.

    Parameters
    ----------
    maps : sequence of sequences of arrays of shape (n, 2) or (n, 3)
        The stages of each map.

    Returns
    -------
    list of lists of Placement
        From coordinates to [0, 1] on each axis.

    Examples
    --------
    >>> Y = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]])
    >>> [[place]] = place_maps([[Y]])
    >>> place(Y).tolist()
    [[0.0, 0.25], [1.0, 0.25], [1.0, 0.75]]
    """
    reference = np.asarray(maps[0][-1], dtype=np.float64)
    placed = [_place_stages(stages, None if i == 0 else reference) for i, stages in enumerate(maps)]
    shown = [
        place(stage) for stages, places in zip(maps, placed, strict=True) for stage, place in zip(stages, places, strict=True)
    ]
    low, high = (_over_all([ends(each, axis=0) for each in shown], ends) for ends in (np.min, np.max))
    center, side = (low + high) / 2, float((high - low).max()) or 1.0
    corner = center - side / 2
    return [[place.within(corner[: len(place.offset)], side) for place in places] for places in placed]


def _place_stages(stages: Sequence[Array], reference: Array | None) -> list[Placement]:
    """From the last stage to the first, each over the one after it."""
    placed: list[Placement] = []
    for stage in reversed(stages):
        axes = stage.shape[1]
        if reference is None:
            place = Placement(np.eye(axes), np.zeros(axes))
        else:
            place = Placement(*alignment(_with_axes(reference, axes), stage, scale="match"))
        reference = place(stage)
        placed.insert(0, place)
    return placed


def _with_axes(embedding: Array, axes: int) -> Array:
    """The first axes of an embedding; those that it lacks are 0."""
    return np.pad(embedding[:, :axes], [(0, 0), (0, max(0, axes - embedding.shape[1]))])


def _over_all(ends: list[Array], extreme: Any) -> Array:
    """The extreme of each axis over all maps, of which some may have an axis less."""
    axes = max(map(len, ends))
    found: Array = np.array([extreme([each[axis] for each in ends if axis < len(each)]) for axis in range(axes)])
    return found
