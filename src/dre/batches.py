"""Which rows meet in a step: fixed batches (the paper), redrawn ones, sampled edges, or seeds with their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dre.affinity.target import Graph, Pairs, Target
from dre.notation import Registry, write

BATCHES = Registry("way of drawing batches", __name__)
KEEP_BYTES = 4 * 2**30  # blocks of fixed batches are kept between epochs up to this size, and computed again beyond it


class Batch(NamedTuple):
    """What one step sees, whichever way it was drawn."""

    ids: Tensor  # (b,) rows to encode
    pairs: Pairs  # positions in ids that attract, and how strongly


class LazyBatch(NamedTuple):
    """A batch that was drawn but not yet put together: a GPU can do that within a step that it repeats as a whole."""

    rows: int
    given: tuple[Tensor, ...]  # of the same shapes in many steps
    assemble: Callable[..., Batch]  # of ``given``, without a word from the host

    def batch(self) -> Batch:
        return self.assemble(*self.given)


def ready(ids: Tensor, pairs: Pairs) -> LazyBatch:
    """A draw whose pairs are there."""
    if pairs.near is None:
        return LazyBatch(len(ids), (ids, pairs.weight), _dense)
    return LazyBatch(len(ids), (ids, pairs.weight, pairs.near), _sparse)


def _dense(ids: Tensor, weight: Tensor) -> Batch:
    return Batch(ids, Pairs(None, weight))


def _sparse(ids: Tensor, weight: Tensor, near: Tensor) -> Batch:
    return Batch(ids, Pairs(near, weight))


class Batches:
    """A way of drawing; an object here is a plan, and ``epochs`` carries it out."""

    name: ClassVar[str]
    along_graph: ClassVar[bool] = False  # whether it needs a target that is a graph

    def __init_subclass__(cls, *, name: str, along_graph: bool = False) -> None:
        cls.name, cls.along_graph = name, along_graph
        BATCHES.add(name, cls)

    def check_scope(self, scope: str) -> None:
        """Refuse an affinity that is over the batch where a graph is needed."""
        if self.along_graph and scope != "graph":
            raise ValueError(
                f"{self} draws along the edges of a graph, but an affinity of the schedule has the scope {scope}: "
                "use scope=graph, or fixed or shuffled batches"
            )

    def select(self, target: Target, n: int) -> Batches:
        """The way that is really used for this target."""
        return self

    def resized(self, size: int) -> Batches:
        """The same way of drawing with batches of another size."""
        return type(self)(size)  # type: ignore[call-arg]

    def steps(self, n: int) -> int:
        """Steps in an epoch over n rows."""
        raise NotImplementedError

    def epochs(self, target: Target, n: int, generator: torch.Generator, seed: int) -> Iterator[Iterable[LazyBatch]]:
        """One iterable of draws per epoch, for ever. What follows from ``seed``, the run's, is the same in every stage."""
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


@dataclass(frozen=True)
class Fixed(Batches, name="fixed"):
    """Shuffled once and cut into batches that never change; a batch's target is computed once per stage (the paper)."""

    size: int = 2500

    def __post_init__(self) -> None:
        _check_size(self.size)

    def steps(self, n: int) -> int:
        return _parts(n, self.size)

    def epochs(self, target: Target, n: int, generator: torch.Generator, seed: int) -> Iterator[Iterable[LazyBatch]]:
        own = torch.Generator(generator.device).manual_seed(seed)
        parts = _evenly(torch.randperm(n, generator=own, device=own.device), self.steps(n))
        if 4 * n * self.size > KEEP_BYTES:
            while True:
                yield (ready(ids, target.block(ids)) for ids in parts)
        kept = [ready(ids, target.block(ids)) for ids in parts]
        while True:
            yield kept


@dataclass(frozen=True)
class Shuffled(Batches, name="shuffled"):
    """Shuffled anew every epoch: each row meets other rows each time."""

    size: int = 2500

    def __post_init__(self) -> None:
        _check_size(self.size)

    def steps(self, n: int) -> int:
        return _parts(n, self.size)

    def epochs(self, target: Target, n: int, generator: torch.Generator, seed: int) -> Iterator[Iterable[LazyBatch]]:
        def assemble(ids: Tensor) -> Batch:
            return Batch(ids, target.block(ids))

        while True:
            parts = _evenly(torch.randperm(n, generator=generator, device=generator.device), self.steps(n))
            if isinstance(target, Graph):
                yield (LazyBatch(len(ids), (ids,), assemble) for ids in parts)
            else:  # to find neighbours inside a batch takes as many rounds as they need, which the host counts
                yield (ready(ids, target.block(ids)) for ids in parts)


@dataclass(frozen=True)
class Edges(Batches, name="edges", along_graph=True):
    """Pairs sampled in proportion to their weight: both ends are encoded, and all rows of the batch repel.

    However large the data, every row of a batch meets a neighbour. An epoch draws as many edges as there are rows.
    """

    size: int = 1024

    def __post_init__(self) -> None:
        _check_size(self.size)

    def steps(self, n: int) -> int:
        return math.ceil(n / self.size)

    def epochs(self, target: Target, n: int, generator: torch.Generator, seed: int) -> Iterator[Iterable[LazyBatch]]:
        graph = _graph_of(target, self)
        upto = graph.weight.double().ravel().cumsum(0)

        def assemble(u: Tensor) -> Batch:
            slot = torch.searchsorted(upto, u * upto[-1], right=True).clamp_max(len(upto) - 1)
            heads, tails = slot // graph.indices.shape[1], graph.indices.ravel()[slot]
            place = torch.arange(2 * self.size, device=slot.device)[:, None]
            near = place % self.size + self.size  # a head is drawn to its tail, a tail, with weight 0, to itself
            return Batch(torch.cat([heads, tails]), Pairs(near, (place < self.size).float()))

        while True:
            yield (LazyBatch(2 * self.size, (self._where(generator),), assemble) for _ in range(self.steps(n)))

    def _where(self, generator: torch.Generator) -> Tensor:
        return torch.rand(self.size, generator=generator, device=generator.device, dtype=torch.double)


@dataclass(frozen=True)
class Neighborhoods(Batches, name="neighborhoods", along_graph=True):
    """Random rows, each with some of its neighbours; the batch gets the sub-block of all of them."""

    seeds: int = 250
    neighbors: int = 9

    def __post_init__(self) -> None:
        _check_size(self.seeds * (1 + self.neighbors))
        if self.neighbors < 1:
            raise ValueError(f"neighbors={self.neighbors}: each seed needs at least one")

    def resized(self, size: int) -> Neighborhoods:
        return Neighborhoods(max(1, size // (1 + self.neighbors)), self.neighbors)

    def steps(self, n: int) -> int:
        return math.ceil(n / (self.seeds * (1 + self.neighbors)))

    def epochs(self, target: Target, n: int, generator: torch.Generator, seed: int) -> Iterator[Iterable[LazyBatch]]:
        graph = _graph_of(target, self)
        while True:
            yield (self._draw(graph, n, generator) for _ in range(self.steps(n)))

    def _draw(self, graph: Graph, n: int, generator: torch.Generator) -> LazyBatch:
        device, k = generator.device, graph.indices.shape[1]
        rows = torch.randint(n, (self.seeds,), generator=generator, device=device)
        slots = torch.randint(k, (self.seeds, self.neighbors), generator=generator, device=device)
        ids = torch.cat([rows, graph.indices[rows].gather(1, slots).ravel()]).unique()
        return ready(ids, graph.block(ids))


@dataclass(frozen=True)
class Auto(Batches, name="auto"):
    """Shuffled batches while a row meets at least one of its neighbours in them (k·size/n ≥ 1), sampled edges beyond."""

    size: int = 2500

    def __post_init__(self) -> None:
        _check_size(self.size)

    def steps(self, n: int) -> int:
        return _parts(n, self.size)  # of shuffled batches, the choice for targets that are inside the batch

    def select(self, target: Target, n: int) -> Batches:
        if target.k is None or target.k * self.size >= n:
            return Shuffled(self.size)
        return Edges(max(2, self.size // 2))


def _parts(n: int, size: int) -> int:
    """How many batches of at most ``size`` rows, or one more row where the last would otherwise be alone."""
    return max(1, min(math.ceil(n / size), n // 2))


def _evenly(ids: Tensor, parts: int) -> tuple[Tensor, ...]:
    """Parts whose sizes differ by one at the most: no batch is a leftover of one row."""
    return torch.tensor_split(ids, parts)


def _graph_of(target: Target, batches: Batches) -> Graph:
    if not isinstance(target, Graph):
        batches.check_scope("batch")
        raise TypeError(f"{batches} needs a Graph, not {type(target).__name__}")
    return target


def _check_size(size: int) -> None:
    if size < 2:
        raise ValueError(f"a batch of {size}: at least 2 rows must meet in a step")
