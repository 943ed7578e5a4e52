"""One step of training; on a GPU recorded once and then repeated as a whole, so that it never waits for the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from dre.batches import Batch
from dre.target import Pairs

WARM_UP = 3  # steps before one is recorded: libraries choose their kernels in the first ones
Learn = Callable[[Tensor, Pairs], Tensor]  # rows and pairs of a batch to the loss; forward, backward and update


class Step(Protocol):
    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        """Learn from the rows x (b, ...) of a batch; gives the loss, which stays on the device."""


class Plain:
    """Every operation is asked for again."""

    def __init__(self, learn: Learn) -> None:
        self._learn = learn

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self._learn(x, batch.pairs)


class Recorded:
    """For each shape of a batch the operations are recorded as a CUDA graph, which later steps replay.

    ``generator`` is what the step draws from: it goes on drawing in a replay.
    """

    def __init__(self, learn: Learn, generator: torch.Generator) -> None:
        self._learn, self._generator = learn, generator
        self._seen: dict[tuple[torch.Size | None, ...], int] = {}
        self._takes: dict[tuple[torch.Size | None, ...], _Take] = {}

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        near, weight = batch.pairs
        shape = (x.shape, None if near is None else near.shape, weight.shape)
        if shape not in self._takes:
            self._seen[shape] = self._seen.get(shape, 0) + 1
            if self._seen[shape] <= WARM_UP:
                return self._warmed_up(x, batch.pairs)
            self._takes[shape] = _Take(self._learn, self._generator, x, batch.pairs)
        return self._takes[shape].play(x, batch.pairs)

    def _warmed_up(self, x: Tensor, pairs: Pairs) -> Tensor:
        """On a stream of its own, as what is recorded later must be."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss = self._learn(x, pairs)
        torch.cuda.current_stream().wait_stream(stream)
        return loss


class _Take:
    """One recording, with the memory that it reads from and writes to."""

    def __init__(self, learn: Learn, generator: torch.Generator, x: Tensor, pairs: Pairs) -> None:
        self._x = x.clone()
        self._pairs = Pairs(None if pairs.near is None else pairs.near.clone(), pairs.weight.clone())
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(generator)
        with torch.cuda.graph(self._graph):
            self._loss = learn(self._x, self._pairs)

    def play(self, x: Tensor, pairs: Pairs) -> Tensor:
        self._x.copy_(x)
        self._pairs.weight.copy_(pairs.weight)
        if self._pairs.near is not None and pairs.near is not None:
            self._pairs.near.copy_(pairs.near)
        self._graph.replay()
        return self._loss.clone()
