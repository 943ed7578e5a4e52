"""Who is near whom in one space, and how far down the order of the other they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW
from dre.metrics.ranks import Ranks
from dre.metrics.study import Gathering, Part, Precision, Study
from dre.neighbors.distances import Distances, with_transpose
from dre.neighbors.exact import KNearest, Nearest, nearest_rows, tree_is_quicker


@dataclass(frozen=True)
class Near:
    """The k nearest others of every row in a space."""

    space: str
    k: int
    needs: ClassVar[tuple[Part, ...]] = ()
    precision: ClassVar[Precision] = Precision.ORDER

    def begin(self, study: Study) -> Gathering:
        distances = study.distances(self.space)
        if tree_is_quicker(distances, self.k):
            return _Known(nearest_rows(distances, self.k))
        return _Near(self.space, KNearest(distances, self.k))


@dataclass(frozen=True)
class RanksOfNeighbors:
    """(n, k) the ranks in a space of those who are the k nearest in the other: 1 for the nearest."""

    ranked_in: str
    k: int
    precision: ClassVar[Precision] = Precision.ORDER

    @property
    def needs(self) -> tuple[Part, ...]:
        return (Near(LOW if self.ranked_in == HIGH else HIGH, self.k),)

    def begin(self, study: Study) -> Gathering:
        (near,) = study.find(*self.needs)
        return _Ranks(self.ranked_in, study.distances(self.ranked_in), near.indices)


class _Known:
    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest

    def take(self, block: Block) -> None:
        """It needs none."""

    def result(self) -> Nearest:
        return self._nearest


class _Near:
    def __init__(self, space: str, so_far: KNearest) -> None:
        self._space, self._so_far = space, so_far

    def take(self, block: Block) -> None:
        with_transpose(self._so_far.update, block.some, block.others, block.squared(self._space))

    def result(self) -> Nearest:
        return self._so_far.nearest()


class _Ranks:
    def __init__(self, space: str, distances: Distances, targets: Tensor) -> None:
        self._space, self._ranks = space, Ranks(distances, targets)

    def take(self, block: Block) -> None:
        with_transpose(self._ranks.take, block.some, block.others, block.squared(self._space))

    def result(self) -> Tensor:
        return self._ranks.ranks
