"""CUDA-graph capture and replay of training steps, so that the GPU never waits for the host."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor

from dre.batches import Batch

WARM_UP = 3  # eager steps before a capture: libraries choose their kernels in the first ones
MAX_GRAPHS = 8  # batches whose shape differs from step to step are not worth the memory
Work = Callable[..., Tensor]
Learn = Callable[[Batch, Tensor], Tensor]  # a batch and its rows to the loss: forward, backward and update


class GraphCapture:
    """Captures a CUDA graph for each shape of the inputs, and replays it in later steps.

    Parameters
    ----------
    generator : torch.Generator
        What the steps draw from. It goes on drawing in a replay.
    lock : Lock
        Held during a capture: no other thread may use the GPU then.
    """

    def __init__(self, generator: torch.Generator, lock: Lock) -> None:
        self._generator = generator
        self._lock = lock
        self._stream = torch.cuda.Stream(generator.device)  # torch's default one belongs to the first device captured on
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: dict[tuple[object, ...], int] = {}
        self._graphs: dict[tuple[object, ...], _CapturedGraph] = {}

    def captured(self, learn: Learn) -> Learn:
        """Return ``learn`` with its steps captured."""

        def captured(batch: Batch, x: Tensor) -> Tensor:
            ids, block = batch

            def work(ids: Tensor, x: Tensor, *parts: Tensor) -> Tensor:
                return learn(Batch(ids, block.with_varying(*parts)), x)

            return self.replay(work, (ids, x, *block.varying), (type(block), len(block.varying)))

        return captured

    def replay(self, work: Work, inputs: tuple[Tensor, ...], kind: object) -> Tensor:
        """Return ``work(*inputs)``, captured or replayed; ``kind`` tells apart works with inputs of the same shapes."""
        shape = (kind, *(part.shape for part in inputs))
        if (graph := self._graphs.get(shape)) is not None:
            return graph.replay(inputs)
        with torch.cuda.device(self._generator.device):
            self._seen[shape] = self._seen.get(shape, 0) + 1
            if self._seen[shape] <= WARM_UP or len(self._graphs) == MAX_GRAPHS:
                return self._warm_up(work, inputs)
            with self._lock:
                self._graphs[shape] = _CapturedGraph(work, inputs, self)
            return self._graphs[shape].replay(inputs)

    def _warm_up(self, work: Work, inputs: tuple[Tensor, ...]) -> Tensor:
        """Run eagerly, on the stream that is captured later."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = work(*inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def capture(self, work: Work, inputs: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Return the graph and the tensor that holds its result; all graphs share memory, since one runs at a time."""
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = work(*inputs)
        return graph, loss


class _CapturedGraph:
    """A graph with the memory that it reads and writes."""

    def __init__(self, work: Work, inputs: tuple[Tensor, ...], capture: GraphCapture) -> None:
        self._inputs = tuple(part.clone() for part in inputs)
        self._graph, self._loss = capture.capture(work, self._inputs)

    def replay(self, inputs: tuple[Tensor, ...]) -> Tensor:
        for static, part in zip(self._inputs, inputs, strict=True):
            static.copy_(part)
        self._graph.replay()
        return self._loss.clone()
