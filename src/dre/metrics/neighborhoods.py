"""Who is near whom in one space, and how far down the order of the other they come."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dre.distances import both_ways
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW
from dre.metrics.ranks import Ranks
from dre.metrics.study import Gathering, Part, Study
from dre.order import Gathered, Nearest, nearest_rows, tree_is_quicker


@dataclass(frozen=True)
class Near:
    """The k nearest others of every row in a space."""

    space: str
    needs: tuple[Part, ...] = ()

    def begin(self, study: Study) -> Gathering:
        return _Near(study, self.space)


@dataclass(frozen=True)
class RanksOfOther:
    """(n, k) the ranks in a space of those who are nearest in the other: 1 for the nearest."""

    space: str

    @property
    def needs(self) -> tuple[Part, ...]:
        return (Near(LOW if self.space == HIGH else HIGH),)

    def begin(self, study: Study) -> Gathering:
        return _Ranks(study, self.space, study.find(*self.needs)[0].indices)


class _Near:
    def __init__(self, study: Study, space: str) -> None:
        distances = study.distances(space)
        self._space = space
        self._by_tree = nearest_rows(distances, study.k) if tree_is_quicker(distances, study.k) else None
        self._gathered = Gathered(distances, study.k) if self._by_tree is None else None

    def take(self, block: Block) -> None:
        if self._gathered is not None:
            both_ways(self._gathered.take, block.some, block.others, block.squared(self._space))

    def result(self) -> Nearest:
        return self._by_tree if self._gathered is None else self._gathered.nearest()  # type: ignore[return-value]


class _Ranks:
    def __init__(self, study: Study, space: str, targets: Tensor) -> None:
        self._space = space
        self._ranks = Ranks(study.distances(space), targets)

    def take(self, block: Block) -> None:
        both_ways(self._ranks.take, block.some, block.others, block.squared(self._space))

    def result(self) -> Tensor:
        return self._ranks.ranks
