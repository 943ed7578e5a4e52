"""Nearest neighbours from blocks of distances, on a GPU: few are below the bar, so that they are only picked out."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.distances import Distances
from dre.gpu.below import Bars, Picked, pick
from dre.order import NearestSoFar

ROOM = 256  # picked values that are kept for a row until they are merged
FULL = ROOM // 2  # that are merged before the next block: it may hold as many again
Side = tuple[slice, slice, Tensor]  # whose neighbours are sought, among whom, and their distances


class Picking:
    """What is below the bar of its row waits until there is much of it, and is then merged into what was found."""

    def __init__(self, distances: Distances, found: NearestSoFar) -> None:
        self._found = found
        self._waiting = Picked.none(distances.n, ROOM, distances.device)
        self._bars = torch.full((distances.n,), torch.inf, device=distances.device)
        self._has_bar: set[int] = set()  # by where a stretch begins
        self._stretches = distances.stretches()

    def take(self, some: slice, others: slice, block: Tensor) -> None:
        """A block of distances, and its transpose."""
        sides = [(some, others, block)] + ([(others, some, block.T)] if some != others else [])
        new = [side for side in sides if side[0].start not in self._has_bar]
        ready = [side for side in sides if side[0].start in self._has_bar]
        if ready and not self._picked(some, others, block, ready):
            new = sides
        for mine, theirs, distances in new:
            self._merge_waiting(mine)
            self._found.take(mine, theirs, distances)
            self._set_bars(mine)

    def finish(self) -> None:
        """Merge all that still waits."""
        for part in self._stretches:
            self._merge_waiting(part)

    def _picked(self, some: slice, others: slice, block: Tensor, sides: list[Side]) -> bool:
        """False where there was no room for all; then nothing was picked."""
        counts = [self._waiting.counts[mine] for mine, _, _ in sides]
        before = [count.clone() for count in counts]
        bars = {mine.start: Bars(self._bars[mine], self._waiting.of(mine), theirs.start) for mine, theirs, _ in sides}
        pick(block, bars.get(some.start), bars.get(others.start) if some != others else None)
        most = torch.stack([count.max() for count in counts]).tolist()
        if max(most) > ROOM:
            for count, old in zip(counts, before, strict=True):
                count.copy_(old)
            return False
        for (mine, _, _), full in zip(sides, most, strict=True):
            if full > FULL:
                self._merge_waiting(mine)
                self._set_bars(mine)
        return True

    def _merge_waiting(self, some: slice) -> None:
        values, ids, counts = self._waiting.of(some)
        most = int(counts.max())
        if most:
            empty = torch.arange(most, device=counts.device) >= counts[:, None]
            self._found.merge(some, values[:, :most].masked_fill(empty, torch.inf), ids[:, :most].long())
            counts.zero_()

    def _set_bars(self, some: slice) -> None:
        self._bars[some] = self._found.bars(some)
        self._has_bar.add(some.start)
