"""Work on a GPU that is recorded once and then repeated as a whole, so that the GPU never waits for the host."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor

from dre.affinity.target import Pairs

WARM_UP = 3  # times that it is carried out before it is recorded: libraries choose their kernels in the first ones
MAX_GRAPHS = 8  # at most: batches whose shape differs from step to step are not worth the memory
Work = Callable[..., Tensor]
Learn = Callable[[Tensor, Pairs], Tensor]  # rows and pairs of a batch to the loss; forward, backward and update


class GraphCapture:
    """For each shape of what is given the operations are recorded as a CUDA graph, which later steps replay.

    ``generator`` is what they draw from: it goes on drawing in a replay.
    """

    def __init__(self, generator: torch.Generator, quiet: Lock) -> None:
        self._generator = generator
        self._quiet = quiet  # held while something is recorded: nothing else may be asked of the GPU then
        self._stream = torch.cuda.Stream(generator.device)  # torch's own is of the device that was recorded on first
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: dict[tuple[object, ...], int] = {}
        self._graphs: dict[tuple[object, ...], _CapturedGraph] = {}

    def learning(self, learn: Learn) -> Learn:
        """The same, recorded."""

        def learned(x: Tensor, pairs: Pairs) -> Tensor:
            near, weight = pairs
            if near is None:
                return self.replay(lambda x, weight: learn(x, Pairs(None, weight)), (x, weight), "dense")
            return self.replay(lambda x, weight, near: learn(x, Pairs(near, weight)), (x, weight, near), "sparse")

        return learned

    def replay(self, work: Work, given: tuple[Tensor, ...], kind: object) -> Tensor:
        """``work(*given)``, recorded or replayed; ``kind`` tells works apart that are given the same shapes."""
        shape = (kind, *(part.shape for part in given))
        with torch.cuda.device(self._generator.device):
            if shape not in self._graphs:
                self._seen[shape] = self._seen.get(shape, 0) + 1
                if self._seen[shape] <= WARM_UP or len(self._graphs) == MAX_GRAPHS:
                    return self._warm_up(work, given)
                with self._quiet:
                    self._graphs[shape] = _CapturedGraph(work, given, self)
            return self._graphs[shape].play(given)

    def _warm_up(self, work: Work, given: tuple[Tensor, ...]) -> Tensor:
        """On the stream that is recorded later."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = work(*given)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def record(self, work: Work, given: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """The work as a graph, and where it leaves what it gives; all share their memory, since one is replayed at a time."""
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = work(*given)
        return graph, loss


class _CapturedGraph:
    """With the memory that it reads from and writes to."""

    def __init__(self, work: Work, given: tuple[Tensor, ...], capture: GraphCapture) -> None:
        self._given = tuple(part.clone() for part in given)
        self._graph, self._loss = capture.record(work, self._given)

    def play(self, given: tuple[Tensor, ...]) -> Tensor:
        for mine, part in zip(self._given, given, strict=True):
            mine.copy_(part)
        self._graph.replay()
        return self._loss.clone()
