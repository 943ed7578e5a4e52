"""Nearest neighbors of every row in one space, and their ranks in the other space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dre.metrics.inputs import HIGH, LOW
from dre.metrics.pairwise_pass import Accumulator, PairBlock, PairwiseStatistics, Precision, Statistic
from dre.neighbors.distances import TIE, PairDistances, with_transpose
from dre.neighbors.exact import KNearest, Nearest, nearest_rows, tree_is_quicker

CHUNK = 1000  # rows of a block whose close calls are settled at once


@dataclass(frozen=True)
class KNeighbors:
    """The k nearest neighbors of every row in a space."""

    space: str
    k: int
    requires: ClassVar[tuple[Statistic, ...]] = ()
    precision: ClassVar[Precision] = Precision.ORDER

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        distances = pairwise.distances(self.space)
        if tree_is_quicker(distances, self.k):
            return _FromTree(nearest_rows(distances, self.k))
        return _FromBlocks(self.space, KNearest(distances, self.k))


class _FromTree:
    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest

    def add(self, block: PairBlock) -> None:
        """Do nothing: a tree search reads no blocks."""

    def result(self) -> Nearest:
        return self._nearest


class _FromBlocks:
    def __init__(self, space: str, nearest: KNearest) -> None:
        self._space, self._nearest = space, nearest

    def add(self, block: PairBlock) -> None:
        with_transpose(self._nearest.update, block.rows, block.columns, block.squared(self._space))

    def result(self) -> Nearest:
        return self._nearest.nearest()


@dataclass(frozen=True)
class NeighborRanks:
    """Ranks (n, k) in a space of the k nearest neighbors in the other space; the nearest has rank 1."""

    ranked_in: str
    k: int
    precision: ClassVar[Precision] = Precision.ORDER

    @property
    def requires(self) -> tuple[Statistic, ...]:
        return (KNeighbors(LOW if self.ranked_in == HIGH else HIGH, self.k),)

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        (neighbors,) = pairwise.compute(*self.requires)
        return _NeighborRanks(self.ranked_in, pairwise.distances(self.ranked_in), neighbors.indices)


class _NeighborRanks:
    def __init__(self, space: str, distances: PairDistances, targets: Tensor) -> None:
        self._space, self._counter = space, RankCounter(distances, targets)

    def add(self, block: PairBlock) -> None:
        with_transpose(self._counter.add, block.rows, block.columns, block.squared(self._space))

    def result(self) -> Tensor:
        return self._counter.ranks


class RankCounter:
    """Ranks of targets among the other rows by counting the nearer ones, without sorting.

    A block is compared with two thresholds around each target's distance. A distance between them is too close to decide
    from a matrix product; directly computed distances decide there, and row indices where these are equal.

    Parameters
    ----------
    distances : PairDistances
    targets : Tensor of shape (n, k)
        Row indices whose ranks are wanted.
    """

    def __init__(self, distances: PairDistances, targets: Tensor) -> None:
        self._distances, self._targets = distances, targets
        self._squared = distances.direct(distances.rows, targets)
        margin = distances.margin(distances.norms.sqrt(), self._squared) + TIE * self._squared
        self._low, self._high = ((self._squared + sign * margin).to(distances.dtype) for sign in (-1, 1))
        self.ranks = torch.ones_like(targets)

    def add(self, rows: slice, columns: slice, block: Tensor) -> None:
        """Count a block of squared distances; blocks may come in any order."""
        low, high, targets = self._low[rows], self._high[rows], self._targets[rows]
        mask = torch.empty_like(block, dtype=torch.bool)
        below = torch.stack([count_true(torch.lt(block, bound[:, None], out=mask)) for bound in low.T], dim=1)
        within = torch.stack([count_true(torch.le(block, bound[:, None], out=mask)) for bound in high.T], dim=1)
        self.ranks[rows] += below
        is_here = (targets >= columns.start) & (targets < columns.stop)
        unclear, which = (within - below > is_here).nonzero(as_tuple=True)
        for row, t in zip(unclear.split(CHUNK), which.split(CHUNK), strict=True):
            values = block[row]
            close, column = ((values >= low[row, t, None]) & (values <= high[row, t, None])).nonzero(as_tuple=True)
            self._settle(rows.start + row[close], t[close], columns.start + column)

    def _settle(self, row: Tensor, t: Tensor, other: Tensor) -> None:
        """Decide for lists of (row, target, other) whether the other comes before the target."""
        squared = self._distances.direct_pairs(row, other)
        target, target_squared = self._targets[row, t], self._squared[row, t]
        equal = (squared - target_squared).abs() <= TIE * target_squared
        nearer = torch.where(equal, other < target, squared < target_squared)
        self.ranks.index_put_((row, t), nearer.long(), accumulate=True)


def count_true(mask: Tensor) -> Tensor:
    """Count the true values in each row of (m, w)."""
    if mask.device.type != "cpu":
        return mask.sum(1)
    # Adds eight booleans at once as the bytes of an int64, ten times faster than one by one. Sums of up to 255 of them
    # cannot overflow into the next byte.
    if mask.is_contiguous():
        sums = [part.sum(1).view(torch.uint8).view(-1, 8) for part in _words(mask).split(255, dim=1)]
        return torch.cat(sums, dim=1).sum(1)
    sums = [part.sum(0).view(torch.uint8) for part in _words(mask.T).split(255)]
    return torch.stack(sums).sum(0)[: len(mask)]


def _words(mask: Tensor) -> Tensor:
    if mask.shape[1] % 8:
        mask = torch.nn.functional.pad(mask, (0, -mask.shape[1] % 8))
    return mask.reshape(-1).view(torch.int64).view(len(mask), -1)
