"""Flat views of embeddings: one of two components is its own view; of three, each pair of them is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dre.data.validation import check_array
from dre.plot.style import Style

Array = np.ndarray[Any, Any]
AXIS = "dre{}"  # name of a component, as in the files of `dre transform`


@dataclass(frozen=True, eq=False)
class Views:
    """The views of several embeddings: all first pairs of components, then all second ones, and so on.

    Parameters
    ----------
    maps : list of arrays of shape (n, 2)
    pairs : list of tuple of int
        The components of each map.
    several : bool
        Whether an embedding has more than one view.

    Examples
    --------
    >>> Views.of([np.zeros((5, 3))]).pairs
    [(0, 1), (0, 2), (1, 2)]
    """

    maps: list[Array]
    pairs: list[tuple[int, int]]

    @classmethod
    def of(cls, embeddings: Sequence[Array]) -> Views:
        """Return the views of embeddings of the same number of components."""
        pairs = list(combinations(range(embeddings[0].shape[1]), 2))
        shown = [(pair, Y) for pair in pairs for Y in embeddings]
        return cls([Y[:, list(pair)] for pair, Y in shown], [pair for pair, _ in shown])

    @property
    def several(self) -> bool:
        return len(set(self.pairs)) > 1

    def label(self, axes: Sequence[Any], style: Style) -> None:
        """Write the names of the components beside each view, where there are several."""
        for axis, (x, y) in zip(axes, self.pairs, strict=True):
            if self.several:
                axis.set_xlabel(AXIS.format(x + 1), color=style.text, fontsize=9.5)
                axis.set_ylabel(AXIS.format(y + 1), color=style.text, fontsize=9.5)


def check_embedding(Y: Any) -> Array:
    """Return an embedding as an array (n, 2) or (n, 3), or raise a ValueError that says how to get one."""
    points = np.asarray(check_array(Y, "Y"))
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise ValueError(
            f"Y has the shape {points.shape}; only embeddings of two or three components can be drawn: pass some of its columns"
        )
    return points
