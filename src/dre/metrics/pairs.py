"""All pairs of rows, a block at a time, in the space of the rows and in that of their map at once."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dre.neighbors.distances import Distances


class Block:
    """Two stretches of rows; the squared distances between them in a space are computed when they are first asked for."""

    def __init__(self, some: slice, others: slice, spaces: Mapping[str, Distances]) -> None:
        self.some, self.others, self._spaces = some, others, spaces
        self._squared: dict[str, Tensor] = {}

    def squared(self, space: str) -> Tensor:
        """(some, others), for reading only; a row's distance to itself is infinite."""
        if space not in self._squared:
            self._squared[space] = self._spaces[space].block(self.some, self.others)
        return self._squared[space]

    def once(self, values: Tensor) -> Tensor:
        """The values of a block as a list in which no pair of rows stands twice."""
        if self.some != self.others:
            return values.reshape(-1)
        return values[torch.ones_like(values, dtype=torch.bool).triu_(1)]
