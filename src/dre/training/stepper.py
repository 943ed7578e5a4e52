"""Steppers make training steps: eagerly, captured as CUDA graphs, or with rows that a thread reads ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dre.batches import Batch, LazyBatch
from dre.data.rows import Rows
from dre.runtime.threads import one_thread
from dre.training.cuda_graphs import GraphCapture, Learn, Work

PREFETCHED = 2  # batches that are read while the GPU works on one
READ_AHEAD = 8  # batches that are read while a CPU works on one: some may come from a disk
Take = Callable[[Tensor], Tensor]  # from ids to rows


class StepResult(NamedTuple):
    """One training step that was made."""

    rows: int
    loss: Tensor  # stays on the device


class Stepper(Protocol):
    """Learns from batches, one step each."""

    def steps(self, batches: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        """Learn from one batch after the other."""


class EagerStepper:
    """Launches every operation of every step."""

    def __init__(self, learn: Learn, take: Take) -> None:
        self._learn, self._take = learn, take

    def steps(self, batches: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        for lazy in batches:
            batch = lazy.batch()
            yield StepResult(lazy.rows, self._learn(batch, self._take(batch.ids)))


class CapturedStepper:
    """Replays steps on rows that lie on the GPU; the graph includes assembling the batch and taking its rows."""

    def __init__(self, learn: Learn, take: Take, capture: GraphCapture) -> None:
        self._learn, self._take, self._capture = learn, take, capture

    def steps(self, batches: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        for lazy in batches:
            yield StepResult(lazy.rows, self._capture.replay(self._work(lazy), lazy.inputs, lazy.assemble))

    def _work(self, lazy: LazyBatch) -> Work:
        def work(*inputs: Tensor) -> Tensor:
            batch = lazy.assemble(*inputs)
            return self._learn(batch, self._take(batch.ids))

        return work


class ReadAheadStepper:
    """Reads the rows of the next batches in a thread while a CPU works on this one.

    Batches are sampled in the calling thread, so that the order of all draws is that of ``EagerStepper``. Rows that are not
    thread-safe are read by no one else: the thread pauses whenever an observer may look at them.
    """

    def __init__(self, learn: Learn, rows: Rows) -> None:
        self._learn, self._take = learn, rows.take
        self._pauses = not getattr(rows, "thread_safe", False)

    def steps(self, batches: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        drawn, pending = iter(batches), deque[tuple[LazyBatch, Batch, Future[Tensor]]]()
        reader = ThreadPoolExecutor(1, "rows")
        try:
            while True:
                while len(pending) < READ_AHEAD and (lazy := next(drawn, None)) is not None:
                    batch = lazy.batch()
                    pending.append((lazy, batch, reader.submit(self._read, batch.ids)))
                if not pending:
                    return
                lazy, batch, read = pending.popleft()
                loss = self._learn(batch, read.result())
                if self._pauses:
                    wait(each[2] for each in pending)
                yield StepResult(lazy.rows, loss)
        finally:
            reader.shutdown(cancel_futures=True)

    def _read(self, ids: Tensor) -> Tensor:
        with one_thread(), torch.no_grad():
            return self._take(ids)


class PrefetchStepper:
    """Reads the rows of the next batches, and sends them to the GPU, while it works on this one."""

    def __init__(self, learn: Learn, take: Take, device: torch.device, lock: Lock) -> None:
        self._learn, self._take, self._device, self._lock = learn, take, device, lock
        self._side = torch.cuda.Stream(device)

    def steps(self, batches: Iterable[LazyBatch]) -> Generator[StepResult, None, None]:
        self._side.wait_stream(torch.cuda.current_stream(self._device))
        reader = ThreadPoolExecutor(1, "rows")
        try:
            yield from self._overlap(iter(batches), reader)
        finally:  # also if the run ends early: memory that is still being read must not be reused
            reader.shutdown(cancel_futures=True)
            torch.cuda.current_stream(self._device).wait_stream(self._side)

    def _overlap(self, batches: Iterator[LazyBatch], reader: ThreadPoolExecutor) -> Generator[StepResult, None, None]:
        pending: deque[_Pending] = deque()
        while True:
            while len(pending) < PREFETCHED and (following := self._begin(batches, reader)) is not None:
                pending.append(following)
            if not pending:
                return
            rows, batch, read = pending.popleft()
            x, arrived = read.result()
            now = torch.cuda.current_stream(self._device)
            now.wait_event(arrived)
            for part in (x, batch.ids, *batch.block.varying):
                part.record_stream(now)
            yield StepResult(rows, self._learn(batch, x))

    def _begin(self, batches: Iterator[LazyBatch], reader: ThreadPoolExecutor) -> _Pending | None:
        """Sample the next batch in this thread, so that the order of all draws is deterministic, and begin to read it."""
        with torch.cuda.stream(self._side):
            lazy = next(batches, None)
            if lazy is None:
                return None
            batch = lazy.batch()
        return _Pending(lazy.rows, batch, reader.submit(self._read, batch.ids))

    def _read(self, ids: Tensor) -> tuple[Tensor, torch.cuda.Event]:
        with self._lock, torch.cuda.device(self._device), torch.cuda.stream(self._side):
            x = self._take(ids)
            return x, self._side.record_event()


class _Pending(NamedTuple):
    rows: int
    batch: Batch
    read: Future[tuple[Tensor, torch.cuda.Event]]
