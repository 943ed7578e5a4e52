"""One step of training; on a GPU recorded once and then repeated as a whole, so that it never waits for the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from dre.batches import Draw
from dre.target import Pairs

WARM_UP = 3  # steps before one is recorded: libraries choose their kernels in the first ones
Learn = Callable[[Tensor, Pairs], Tensor]  # rows and pairs of a batch to the loss; forward, backward and update
Take = Callable[[Tensor], Tensor]  # the rows with these ids
Work = Callable[..., Tensor]


class Step(Protocol):
    def __call__(self, draw: Draw) -> Tensor:
        """Learn from a batch; gives the loss, which stays on the device."""


class Plain:
    """Every operation is asked for again."""

    def __init__(self, learn: Learn, take: Take) -> None:
        self._learn, self._take = learn, take

    def __call__(self, draw: Draw) -> Tensor:
        batch = draw.batch()
        return self._learn(self._take(batch.ids), batch.pairs)


class Recorded:
    """For each shape of a batch the operations are recorded as a CUDA graph, which later steps replay.

    ``generator`` is what the step draws from: it goes on drawing in a replay. ``from_start``: whether the recording begins with
    putting the batch together and taking its rows, which needs both to be on the GPU.
    """

    def __init__(self, learn: Learn, take: Take, generator: torch.Generator, *, from_start: bool) -> None:
        self._learn, self._take, self._generator, self._from_start = learn, take, generator, from_start
        self._seen: dict[tuple[object, ...], int] = {}
        self._takes: dict[tuple[object, ...], _Recording] = {}

    def __call__(self, draw: Draw) -> Tensor:
        if self._from_start:

            def work(*given: Tensor) -> Tensor:
                batch = draw.together(*given)
                return self._learn(self._take(batch.ids), batch.pairs)

            return self._repeated(work, draw.given, draw.together)
        ids, (near, weight) = draw.batch()
        x = self._take(ids)
        if near is None:
            return self._repeated(lambda x, weight: self._learn(x, Pairs(None, weight)), (x, weight), "dense")
        return self._repeated(lambda x, weight, near: self._learn(x, Pairs(near, weight)), (x, weight, near), "sparse")

    def _repeated(self, work: Work, given: tuple[Tensor, ...], kind: object) -> Tensor:
        shape = (kind, *(part.shape for part in given))
        if shape not in self._takes:
            self._seen[shape] = self._seen.get(shape, 0) + 1
            if self._seen[shape] <= WARM_UP:
                return _warmed_up(work, given)
            self._takes[shape] = _Recording(work, self._generator, given)
        return self._takes[shape].play(given)


def _warmed_up(work: Work, given: tuple[Tensor, ...]) -> Tensor:
    """On a stream of its own, as what is recorded later must be."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        loss = work(*given)
    torch.cuda.current_stream().wait_stream(stream)
    return loss


class _Recording:
    """With the memory that it reads from and writes to."""

    def __init__(self, work: Work, generator: torch.Generator, given: tuple[Tensor, ...]) -> None:
        self._given = tuple(part.clone() for part in given)
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(generator)
        with torch.cuda.graph(self._graph):
            self._loss = work(*self._given)

    def play(self, given: tuple[Tensor, ...]) -> Tensor:
        for mine, part in zip(self._given, given, strict=True):
            mine.copy_(part)
        self._graph.replay()
        return self._loss.clone()
