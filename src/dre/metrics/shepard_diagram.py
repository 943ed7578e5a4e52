"""The Shepard diagram: how often a distance between rows became which distance in the map, over all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dre.metrics.extent import Extent, Range
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, Device, two_spaces
from dre.metrics.study import Gathering, Part, Precision, Study

Array = np.ndarray[Any, Any]


class ShepardDiagram(NamedTuple):
    counts: Array  # (bins, bins) pairs, by distance in X and by distance in Y
    high_edges: Array  # (bins + 1,)
    low_edges: Array


def shepard_diagram(X: Any, Y: Any, *, bins: int = 100, device: Device = "auto") -> ShepardDiagram:
    """Count all pairs of rows by their distance in X and their distance in the map Y; ``dre.plot.shepard`` draws it.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> int(shepard_diagram(X, X[:, :2], bins=10).counts.sum()) == 100 * 99 // 2
    True
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise ValueError(f"bins={bins!r}; expected a whole number from 2 on")
    study = Study(two_spaces(X, Y, device), "Shepard diagram")
    (counts,) = study.find(Joint(int(bins)))
    return ShepardDiagram(counts.cpu().numpy(), *(_edges(study, space, int(bins)) for space in (HIGH, LOW)))


def _edges(study: Study, space: str, bins: int) -> Array:
    least, most = study.find(Extent(space))[0]
    return study.distances(space).unit * np.linspace(least, most, bins + 1)


@dataclass(frozen=True)
class Joint:
    """(bins, bins) the number of pairs by both distances, each from its smallest to its largest."""

    bins: int
    needs: ClassVar[tuple[Part, ...]] = (Extent(HIGH), Extent(LOW))
    precision: ClassVar[Precision] = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        high, low = study.find(*self.needs)
        return _Joint(self.bins, {HIGH: high, LOW: low}, study.device)


class _Joint:
    def __init__(self, bins: int, extents: dict[str, Range], device: torch.device) -> None:
        self._bins, self._extents = bins, extents
        self._counts = torch.zeros(bins * bins, dtype=torch.long, device=device)

    def take(self, block: Block) -> None:
        high, low = (self._bin(block, space) for space in (HIGH, LOW))
        self._counts += (high * self._bins + low).bincount(minlength=len(self._counts))

    def _bin(self, block: Block, space: str) -> Tensor:
        share = self._extents[space].scaled(block.once(block.squared(space)))
        return share.mul_(self._bins).long().clamp_(0, self._bins - 1)

    def result(self) -> Tensor:
        return self._counts.view(self._bins, self._bins)
