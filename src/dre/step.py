"""Steps of training; on a GPU recorded once and then repeated as a whole, so that it never waits for the host."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dre.batches import Draw
from dre.target import Pairs

WARM_UP = 3  # steps before one is recorded: libraries choose their kernels in the first ones
RECORDINGS = 8  # at most: batches whose shape differs from step to step are not worth the memory
AHEAD = 2  # batches that are being read while the GPU works on one
Learn = Callable[[Tensor, Pairs], Tensor]  # rows and pairs of a batch to the loss; forward, backward and update
Take = Callable[[Tensor], Tensor]  # the rows with these ids
Work = Callable[..., Tensor]


class Made(NamedTuple):
    """A step that was made."""

    rows: int
    loss: Tensor  # stays on the device


class Steps(Protocol):
    def over(self, draws: Iterable[Draw]) -> Generator[Made, None, None]:
        """Learn from one batch after the other."""


class Plain:
    """Every operation is asked for again."""

    def __init__(self, learn: Learn, take: Take) -> None:
        self._learn, self._take = learn, take

    def over(self, draws: Iterable[Draw]) -> Generator[Made, None, None]:
        for draw in draws:
            batch = draw.batch()
            yield Made(draw.rows, self._learn(self._take(batch.ids), batch.pairs))


class Held:
    """Rows lie on the GPU: a recording begins with putting the batch together and taking its rows."""

    def __init__(self, learn: Learn, take: Take, recorder: Recorder) -> None:
        self._learn, self._take, self._recorder = learn, take, recorder

    def over(self, draws: Iterable[Draw]) -> Generator[Made, None, None]:
        for draw in draws:
            yield Made(draw.rows, self._recorder.repeated(self._work(draw), draw.given, draw.together))

    def _work(self, draw: Draw) -> Work:
        def work(*given: Tensor) -> Tensor:
            batch = draw.together(*given)
            return self._learn(self._take(batch.ids), batch.pairs)

        return work


class Streamed:
    """Rows come from elsewhere: those of the next batches are read, and sent to the GPU, while it works on this one."""

    def __init__(self, learn: Learn, take: Take, device: torch.device, quiet: Lock) -> None:
        self._learn, self._take, self._device, self._quiet = learn, take, device, quiet
        self._side = torch.cuda.Stream(device)

    def over(self, draws: Iterable[Draw]) -> Generator[Made, None, None]:
        coming = iter(draws)
        self._side.wait_stream(torch.cuda.current_stream(self._device))
        with ThreadPoolExecutor(1, "rows") as reader:
            waiting: deque[_Coming] = deque()
            while True:
                while len(waiting) < AHEAD and (soon := self._begun(coming, reader)) is not None:
                    waiting.append(soon)
                if not waiting:
                    return
                rows, pairs, read = waiting.popleft()
                x, there = read.result()
                now = torch.cuda.current_stream(self._device)
                now.wait_event(there)
                for part in (x, *(part for part in pairs if part is not None)):
                    part.record_stream(now)
                yield Made(rows, self._learn(x, pairs))

    def _begun(self, coming: Iterator[Draw], reader: ThreadPoolExecutor) -> _Coming | None:
        """The next batch, drawn by this thread, so that the order of all draws is the same every time."""
        with torch.cuda.stream(self._side):
            draw = next(coming, None)
            if draw is None:
                return None
            batch = draw.batch()
        return _Coming(draw.rows, batch.pairs, reader.submit(self._read, batch.ids))

    def _read(self, ids: Tensor) -> tuple[Tensor, torch.cuda.Event]:
        with self._quiet, torch.cuda.device(self._device), torch.cuda.stream(self._side):
            x = self._take(ids)
            return x, self._side.record_event()


class _Coming(NamedTuple):
    rows: int
    pairs: Pairs
    read: Future[tuple[Tensor, torch.cuda.Event]]


class Recorder:
    """For each shape of what is given the operations are recorded as a CUDA graph, which later steps replay.

    ``generator`` is what they draw from: it goes on drawing in a replay.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.quiet = Lock()  # held while something is recorded: nothing else may be asked of the GPU then
        self._generator = generator
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: dict[tuple[object, ...], int] = {}
        self._recordings: dict[tuple[object, ...], _Recording] = {}

    def learning(self, learn: Learn) -> Learn:
        """The same, recorded."""

        def learned(x: Tensor, pairs: Pairs) -> Tensor:
            near, weight = pairs
            if near is None:
                return self.repeated(lambda x, weight: learn(x, Pairs(None, weight)), (x, weight), "dense")
            return self.repeated(lambda x, weight, near: learn(x, Pairs(near, weight)), (x, weight, near), "sparse")

        return learned

    def repeated(self, work: Work, given: tuple[Tensor, ...], kind: object) -> Tensor:
        """``work(*given)``, recorded or replayed; ``kind`` tells works apart that are given the same shapes."""
        shape = (kind, *(part.shape for part in given))
        with torch.cuda.device(self._generator.device):
            if shape not in self._recordings:
                self._seen[shape] = self._seen.get(shape, 0) + 1
                if self._seen[shape] <= WARM_UP or len(self._recordings) == RECORDINGS:
                    return _warmed_up(work, given)
                with self.quiet:
                    self._recordings[shape] = _Recording(work, given, self._generator, self._pool)
            return self._recordings[shape].play(given)


def _warmed_up(work: Work, given: tuple[Tensor, ...]) -> Tensor:
    """On a stream of its own, as what is recorded later must be."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        loss = work(*given)
    torch.cuda.current_stream().wait_stream(stream)
    return loss


class _Recording:
    """With the memory that it reads from and writes to, which it shares with others: one is replayed at a time."""

    def __init__(self, work: Work, given: tuple[Tensor, ...], generator: torch.Generator, pool: Any) -> None:
        self._given = tuple(part.clone() for part in given)
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(generator)
        with torch.cuda.graph(self._graph, pool=pool):
            self._loss = work(*self._given)

    def play(self, given: tuple[Tensor, ...]) -> Tensor:
        for mine, part in zip(self._given, given, strict=True):
            mine.copy_(part)
        self._graph.replay()
        return self._loss.clone()
