"""Steps of training: plain ones, and on a GPU those of rows that it holds and of rows that are streamed to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dre.affinity.target import Pairs
from dre.batches import LazyBatch
from dre.training.cuda_graphs import GraphCapture, Learn, Work

AHEAD = 2  # batches that are being read while the GPU works on one
Take = Callable[[Tensor], Tensor]  # the rows with these ids


class StepResult(NamedTuple):
    """A step that was made."""

    rows: int
    loss: Tensor  # stays on the device


class Stepper(Protocol):
    def steps(self, draws: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        """Learn from one batch after the other."""


class EagerStepper:
    """Every operation is asked for again."""

    def __init__(self, learn: Learn, take: Take) -> None:
        self._learn, self._take = learn, take

    def steps(self, draws: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        for draw in draws:
            batch = draw.batch()
            yield StepResult(draw.rows, self._learn(self._take(batch.ids), batch.pairs))


class CapturedStepper:
    """Rows lie on the GPU: a recording begins with putting the batch together and taking its rows."""

    def __init__(self, learn: Learn, take: Take, capture: GraphCapture) -> None:
        self._learn, self._take, self._capture = learn, take, capture

    def steps(self, draws: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        for draw in draws:
            yield StepResult(draw.rows, self._capture.replay(self._work(draw), draw.given, draw.assemble))

    def _work(self, draw: LazyBatch) -> Work:
        def work(*given: Tensor) -> Tensor:
            batch = draw.assemble(*given)
            return self._learn(self._take(batch.ids), batch.pairs)

        return work


class PrefetchStepper:
    """Rows come from elsewhere: those of the next batches are read, and sent to the GPU, while it works on this one."""

    def __init__(self, learn: Learn, take: Take, device: torch.device, quiet: Lock) -> None:
        self._learn, self._take, self._device, self._quiet = learn, take, device, quiet
        self._side = torch.cuda.Stream(device)

    def steps(self, draws: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        self._side.wait_stream(torch.cuda.current_stream(self._device))
        reader = ThreadPoolExecutor(1, "rows")
        try:
            yield from self._overlap(iter(draws), reader)
        finally:  # also where the run is ended early: memory that is still being read must not be used again
            reader.shutdown(cancel_futures=True)
            torch.cuda.current_stream(self._device).wait_stream(self._side)

    def _overlap(self, coming: Iterator[LazyBatch], reader: ThreadPoolExecutor) -> Generator[StepResult, None, None]:
        waiting: deque[_Pending] = deque()
        while True:
            while len(waiting) < AHEAD and (soon := self._begin(coming, reader)) is not None:
                waiting.append(soon)
            if not waiting:
                return
            rows, pairs, read = waiting.popleft()
            x, there = read.result()
            now = torch.cuda.current_stream(self._device)
            now.wait_event(there)
            for part in (x, *(part for part in pairs if part is not None)):
                part.record_stream(now)
            yield StepResult(rows, self._learn(x, pairs))

    def _begin(self, coming: Iterator[LazyBatch], reader: ThreadPoolExecutor) -> _Pending | None:
        """The next batch, drawn by this thread, so that the order of all draws is the same every time."""
        with torch.cuda.stream(self._side):
            draw = next(coming, None)
            if draw is None:
                return None
            batch = draw.batch()
        return _Pending(draw.rows, batch.pairs, reader.submit(self._read, batch.ids))

    def _read(self, ids: Tensor) -> tuple[Tensor, torch.cuda.Event]:
        with self._quiet, torch.cuda.device(self._device), torch.cuda.stream(self._side):
            x = self._take(ids)
            return x, self._side.record_event()


class _Pending(NamedTuple):
    rows: int
    pairs: Pairs
    read: Future[tuple[Tensor, torch.cuda.Event]]
