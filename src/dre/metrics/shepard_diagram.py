"""The Shepard diagram: how often a distance between rows became which distance in the map, over all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, Device, two_spaces
from dre.metrics.stress import Extent
from dre.metrics.study import Gathering, Part, Study

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
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 2:
        raise ValueError(f"bins={bins!r}; expected a whole number from 2 on")
    study = Study(two_spaces(X, Y, device), title="Shepard diagram")
    (counts,) = study.find(Joint(bins))
    return ShepardDiagram(counts.cpu().numpy(), *(_edges(study, space, bins) for space in (HIGH, LOW)))


def _edges(study: Study, space: str, bins: int) -> Array:
    least, most = study.find(Extent(space))[0]
    return study.distances(space).unit * np.linspace(least, most, bins + 1)


@dataclass(frozen=True)
class Joint:
    """(bins, bins) the number of pairs by both distances, each from its smallest to its largest."""

    bins: int
    needs: tuple[Part, ...] = (Extent(HIGH), Extent(LOW))

    def begin(self, study: Study) -> Gathering:
        high, low = study.find(*self.needs)
        return _Joint(self.bins, high, low, study.spaces[LOW].device)


class _Joint:
    def __init__(self, bins: int, high: tuple[float, float], low: tuple[float, float], device: torch.device) -> None:
        self._bins, self._extents = bins, {HIGH: high, LOW: low}
        self._counts = torch.zeros(bins * bins, dtype=torch.long, device=device)

    def take(self, block: Block) -> None:
        both = self._bin(block, HIGH) * self._bins + self._bin(block, LOW)
        self._counts += both.bincount(minlength=len(self._counts))

    def _bin(self, block: Block, space: str) -> Tensor:
        least, most = self._extents[space]
        distances = block.once(block.squared(space)).clamp_min(0).sqrt_()
        share = distances.sub_(least).mul_(self._bins / (most - least) if most > least else 0.0)
        return share.long().clamp_(0, self._bins - 1)

    def result(self) -> Tensor:
        return self._counts.view(self._bins, self._bins)
