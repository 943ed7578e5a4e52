"""A random order of rows that a disk can follow: those that lie together come soon after each other, among others from afar."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

# One cold pass over a file of 2 GB, which fits into memory once read: 0.5 GB/s in this order, 0.4 from the first row to the
# last, 0.1 at random. Files that do not fit were not measured.
BLOCK_BYTES = 2**21  # rows that lie together: a disk reads so much at a time nearly as fast as a whole file
WINDOW_BYTES = 2**30  # blocks among which rows are shuffled: some hundred, so that a file sorted by class gives mixed batches
WINDOWED_BYTES = 2**30  # arrays from this size on; by size alone, so that free memory does not change the bits of a fit


class Window(NamedTuple):
    """A way of shuffling rows that lie on a disk.

    Blocks come in random order, one from each part of the file in turn, so that any window has some of each class of a sorted
    file. A row comes at a random moment within the window that begins with its block. The last window goes on at the beginning,
    so that every batch has rows from as many blocks. A pass reads each block once, at the pace of the batches; only those of
    the last window are read twice.

    >>> window = Window(rows=2, blocks=3)
    >>> order = window.order(20, torch.Generator().manual_seed(0))
    >>> order.sort().values.equal(torch.arange(20))
    True
    """

    rows: int  # in a block
    blocks: int

    @classmethod
    def of(cls, n: int, row_bytes: int) -> Window | None:
        """Return the window for n rows of so many bytes; None if they are few."""
        if n * row_bytes < WINDOWED_BYTES:
            return None
        return cls(max(1, BLOCK_BYTES // row_bytes), WINDOW_BYTES // BLOCK_BYTES)

    def order(self, n: int, generator: torch.Generator) -> Tensor:
        """Return a random order of n rows, on the generator's device."""
        device, count = generator.device, math.ceil(n / self.rows)
        if count <= self.blocks:
            return torch.randperm(n, generator=generator, device=device)
        begins = self._begins(count, generator)
        moments = torch.rand(n, generator=generator, device=device, dtype=torch.double).mul_(self.blocks)
        moments += begins.repeat_interleave(self.rows)[:n]
        return moments.remainder_(count).argsort()

    def _begins(self, count: int, generator: torch.Generator) -> Tensor:
        """Return the place of each block in the order of blocks; ``blocks`` parts of the file take turns."""
        device = generator.device
        part = torch.arange(count, device=device) * self.blocks // count
        first = part.new_full((self.blocks,), count).scatter_reduce_(0, part, torch.arange(count, device=device), "amin")
        u = torch.rand(count, generator=generator, device=device, dtype=torch.double)
        turn = torch.empty_like(part)
        turn[(part + u).argsort()] = torch.arange(count, device=device) - first[part]
        place = torch.randperm(self.blocks, generator=generator, device=device)  # of a part in each turn: any window has all
        return (turn * self.blocks + place[part]).argsort().argsort()
