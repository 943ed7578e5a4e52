"""Ranks are counted, not sorted: how many others are nearer to a row than one of its neighbours elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.neighbors.distances import TIE, Distances

AT_ONCE = 1000  # rows of a block that are looked at again


class Ranks:
    """The rank of each target (n, k) among the others of its row, 1 for the nearest, from blocks that come in any order.

    A block is compared with two thresholds around each target's distance. What lies between them is too close to tell from a
    product; there the direct distances decide, and the indices where these are equal.
    """

    def __init__(self, distances: Distances, targets: Tensor) -> None:
        self._distances, self._targets = distances, targets
        self._squared = distances.direct(distances.rows, targets)
        margin = distances.margin(distances.norms.sqrt(), self._squared) + TIE * self._squared
        self._low, self._high = ((self._squared + sign * margin).to(distances.dtype) for sign in (-1, 1))
        self.ranks = torch.ones_like(targets)

    def take(self, some: slice, others: slice, block: Tensor) -> None:
        low, high, targets = self._low[some], self._high[some], self._targets[some]
        mask = torch.empty_like(block, dtype=torch.bool)
        below = torch.stack([count(torch.lt(block, bar[:, None], out=mask)) for bar in low.T], dim=1)
        within = torch.stack([count(torch.le(block, bar[:, None], out=mask)) for bar in high.T], dim=1)
        self.ranks[some] += below
        itself = (targets >= others.start) & (targets < others.stop)
        rows, which = (within - below > itself).nonzero(as_tuple=True)
        for row, t in zip(rows.split(AT_ONCE), which.split(AT_ONCE), strict=True):
            between = block[row]
            open_ones, columns = ((between >= low[row, t, None]) & (between <= high[row, t, None])).nonzero(as_tuple=True)
            self._settle(some.start + row[open_ones], t[open_ones], others.start + columns)

    def _settle(self, row: Tensor, t: Tensor, other: Tensor) -> None:
        """Whether ``other`` comes before the target t of a row, for lists of the three."""
        squared = self._distances.direct_pairs(row, other)
        target, its_squared = self._targets[row, t], self._squared[row, t]
        equal = (squared - its_squared).abs() <= TIE * its_squared
        nearer = torch.where(equal, other < target, squared < its_squared)
        self.ranks.index_put_((row, t), nearer.long(), accumulate=True)


def count(mask: Tensor) -> Tensor:
    """(m,) how many are true in each row of (m, w)."""
    if mask.device.type != "cpu":
        return mask.sum(1)
    # Eight truths are added at once, as the bytes of a whole number; up to 255 of them can't overflow into the next byte.
    # Ten times faster than to add them one by one.
    if mask.is_contiguous():
        sums = [part.sum(1).view(torch.uint8).view(-1, 8) for part in _words(mask).split(255, dim=1)]
        return torch.cat(sums, dim=1).sum(1)
    sums = [part.sum(0).view(torch.uint8) for part in _words(mask.T).split(255)]
    return torch.stack(sums).sum(0)[: len(mask)]


def _words(mask: Tensor) -> Tensor:
    if mask.shape[1] % 8:
        mask = torch.nn.functional.pad(mask, (0, -mask.shape[1] % 8))
    return mask.reshape(-1).view(torch.int64).view(len(mask), -1)
