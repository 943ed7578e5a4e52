"""From the smallest to the largest distance: what distances are scaled by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dre.metrics.pairs import Block
from dre.metrics.study import Gathering, Part, Precision, Study


class Range(NamedTuple):
    least: float
    most: float

    def scaled(self, squared: Tensor) -> Tensor:
        """Squared distances as distances, from 0 at the least to 1 at the most, in float64."""
        distances = squared.clamp_min(0).double().sqrt_()
        return distances.sub_(self.least).div_(self.most - self.least if self.most > self.least else 1.0)


@dataclass(frozen=True)
class Extent:
    """The range of all distances in a space, in the unit of its ``Distances``."""

    space: str
    needs: ClassVar[tuple[Part, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        return _Extent(study, self.space)


class _Extent:
    def __init__(self, study: Study, space: str) -> None:
        self._distances, self._space = study.distances(space), space
        self._reach = self._distances.norms.max().sqrt().reshape(1)
        self._least, self._most = torch.inf, 0.0

    def take(self, block: Block) -> None:
        squared = block.squared(self._space)
        values = block.once(squared)
        if not values.numel():  # a single row
            return
        self._most = max(self._most, float(values.max()))
        smallest = values.min().double().clamp_min(0).reshape(1)
        margin = self._distances.margin(self._reach, smallest)
        if self._least > 0 and float(smallest - margin) < self._least:
            # The smallest of the products need not be that of the smallest distance, and is never that of two equal rows.
            rows, columns = (squared <= smallest + 2 * margin).nonzero(as_tuple=True)
            true = self._distances.direct_pairs(block.some.start + rows, block.others.start + columns)
            self._least = min(self._least, float(true.min()))

    def result(self) -> Range:
        return Range(self._least**0.5, self._most**0.5)
