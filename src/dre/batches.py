"""Batch samplers: fixed batches (the paper), shuffled ones, sampled edges, or rows with their neighbors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dre.affinity.bank import Bank
from dre.affinity.target import Block, Coordinates, Graph, Pairs, Target
from dre.data.rows import chunk_length
from dre.notation import Registry, write
from dre.runtime import RandomStreams
from dre.runtime.float64 import near_float64

BATCHES = Registry("batch sampler", __name__)
SUMMED = 2**27  # neighbors of all rows whose weights are summed up at once; beyond, those of a row when it is sampled
KEEP_BYTES = 4 * 2**30  # pairs of fixed batches are kept between epochs up to this size, and computed again beyond it


class Batch(NamedTuple):
    """The rows of one step."""

    ids: Tensor  # (b,) rows to encode
    block: Block  # what they match: mostly positions in ids that attract, and how strongly


class LazyBatch(NamedTuple):
    """Sampled ids; ``assemble`` finds the pairs, on a GPU inside the captured graph."""

    rows: int
    inputs: tuple[Tensor, ...]  # of the same shapes in many steps
    assemble: Callable[..., Batch]  # called with ``inputs``, without host synchronization

    def batch(self) -> Batch:
        return self.assemble(*self.inputs)


Sampler = Callable[[int], Iterable[LazyBatch]]  # from the number of an epoch to its batches


def presampled(ids: Tensor, block: Block) -> LazyBatch:
    """Return a batch whose block is known already."""
    return LazyBatch(len(ids), (ids, *block.varying), Presampled(block))


class Presampled:
    """Puts the varying parts of a block into one like it. Two of the same kind are equal, and share a CUDA graph."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._kind = (type(block), len(block.varying))

    def __call__(self, ids: Tensor, *parts: Tensor) -> Batch:
        return Batch(ids, self._block.with_varying(*parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Presampled) and self._kind == other._kind

    def __hash__(self) -> int:
        return hash(self._kind)


class Batches:
    """A way of sampling batches; an instance is part of a plan, and ``sampler`` executes it.

    Subclasses that set ``follows_graph`` need a target that is a graph. ``capturable`` promises that ``assemble`` of their
    batches can be captured in a CUDA graph; it is not inherited.
    """

    name: ClassVar[str]
    follows_graph: ClassVar[bool] = False
    capturable: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str, follows_graph: bool = False) -> None:
        cls.name, cls.follows_graph = name, follows_graph
        cls.capturable = cls.__dict__.get("capturable", False)
        BATCHES.add(name, cls)

    def check_scope(self, scope: str) -> None:
        """Raise a ValueError if this needs a graph and an affinity has the scope ``"batch"``."""
        if self.follows_graph and scope != "graph":
            raise ValueError(
                f"{self} samples along the edges of a graph, but an affinity of the schedule has the scope {scope}: "
                "use scope=graph, or fixed or shuffled batches"
            )

    def select(self, target: Target, n: int) -> Batches:
        """Return the way of sampling that is used for this target: uniform where rows need not meet their neighbors."""
        if self.follows_graph and isinstance(target, (Bank, Coordinates)):
            return Shuffled(self.rows)
        return self

    @property
    def rows(self) -> int:
        """Number of rows in a step, at most."""
        raise NotImplementedError

    def resized(self, size: int) -> Batches:
        """Return the same way of sampling with about this many rows in a batch."""
        return type(self)(size)  # type: ignore[call-arg]

    def split(self, ranks: int) -> Batches:
        """Return the share of one of so many ranks."""
        return self if ranks == 1 else self.resized(max(2, self.rows // ranks))

    def steps(self, n: int) -> int:
        """Number of steps in an epoch over n rows."""
        raise NotImplementedError

    def sampler(self, target: Target, n: int, streams: RandomStreams) -> Sampler:
        """Return a function from the number of an epoch to its batches; ``streams`` are those of the stage."""
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


@dataclass(frozen=True)
class Fixed(Batches, name="fixed"):
    """Shuffled once and cut into batches that never change, as in the paper.

    The pairs of a batch are computed once per stage, and kept if they fit into memory.
    """

    size: int = 2500
    capturable = True

    def __post_init__(self) -> None:
        _check_size(self.size)

    @property
    def rows(self) -> int:
        return self.size

    def steps(self, n: int) -> int:
        return _parts(n, self.size)

    def sampler(self, target: Target, n: int, streams: RandomStreams) -> Sampler:
        parts = _evenly(streams.of_stage(0).order(n, "fixed batches"), self.steps(n))  # the same in every stage
        if 4 * n * self.size > KEEP_BYTES:
            return lambda epoch: (presampled(ids, target.block(ids)) for ids in parts)
        kept = [presampled(ids, target.block(ids)) for ids in parts]
        return lambda epoch: kept


@dataclass(frozen=True)
class Shuffled(Batches, name="shuffled"):
    """Shuffled again every epoch: a row meets other rows each time."""

    size: int = 2500
    capturable = True

    def __post_init__(self) -> None:
        _check_size(self.size)

    @property
    def rows(self) -> int:
        return self.size

    def steps(self, n: int) -> int:
        return _parts(n, self.size)

    def sampler(self, target: Target, n: int, streams: RandomStreams) -> Sampler:
        def assemble(ids: Tensor) -> Batch:
            return Batch(ids, target.block(ids))

        def sample(epoch: int) -> Iterator[LazyBatch]:
            parts = _evenly(streams.order(n, "batches", epoch), self.steps(n))
            if target.capturable:
                return (LazyBatch(len(ids), (ids,), assemble) for ids in parts)
            return (presampled(ids, target.block(ids)) for ids in parts)

        return sample


@dataclass(frozen=True)
class Edges(Batches, name="edges", follows_graph=True):
    """Edges sampled in proportion to their weight: both ends are encoded, and all rows of the batch repel.

    Every row of a batch meets a neighbor, however many rows there are. An epoch samples as many edges as there are rows.
    """

    size: int = 1024
    capturable = True

    def __post_init__(self) -> None:
        _check_size(self.size)

    def resized(self, size: int) -> Edges:
        return Edges(max(2, size // 2))  # each edge brings two rows into the batch

    @property
    def rows(self) -> int:
        return 2 * self.size

    def steps(self, n: int) -> int:
        return math.ceil(n / self.size)

    def sampler(self, target: Target, n: int, streams: RandomStreams) -> Sampler:
        graph = _check_graph(target, self)
        edges = _edges_by_sum(graph) if graph.weight.numel() <= SUMMED else _edges_by_row(graph)

        def assemble(u: Tensor) -> Batch:
            heads, tails = edges(u)
            position = torch.arange(2 * self.size, device=heads.device)[:, None]
            near = position % self.size + self.size  # a head attracts its tail; a tail, with weight 0, itself
            return Batch(torch.cat([heads, tails]), Pairs(near, (position < self.size).float()))

        def sample(epoch: int) -> Iterator[LazyBatch]:
            generator = streams.in_float64.generator("batches", epoch)
            for _ in range(self.steps(n)):
                u = torch.rand(self.size, generator=generator, device=generator.device, dtype=torch.double)
                yield LazyBatch(2 * self.size, (u,), assemble)

        return sample


def _edges_by_sum(graph: Graph) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return a function from uniform numbers to the ends of edges, by one cumulative sum: 8 bytes for each neighbor."""
    upto = near_float64(graph.weight).double().ravel().cumsum(0)

    def edges(u: Tensor) -> tuple[Tensor, Tensor]:
        slot = torch.searchsorted(upto, u * upto[-1], right=True).clamp_max(len(upto) - 1).to(graph.indices.device)
        return slot // graph.indices.shape[1], graph.indices.ravel()[slot].long()

    return edges


def _edges_by_row(graph: Graph) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return such a function that holds the cumulative sum over rows alone, and sums up a row when it is sampled."""
    step = chunk_length(graph.weight.shape[1:])
    upto = torch.cat([near_float64(part).sum(1, dtype=torch.double) for part in graph.weight.split(step)]).cumsum(0)

    def edges(u: Tensor) -> tuple[Tensor, Tensor]:
        at = u * upto[-1]
        heads = torch.searchsorted(upto, at, right=True).clamp_max(len(upto) - 1)
        rows = heads.to(graph.weight.device)
        within = near_float64(graph.weight[rows]).double().cumsum(1)
        whole = within[:, -1]
        # Rounding may put it at the end or below 0: there the last or the first edge with a weight is taken.
        rest = torch.minimum(at - (upto[heads] - whole), torch.nextafter(whole, torch.zeros_like(whole))).clamp_min_(0)
        slots = (within <= rest[:, None]).sum(1, keepdim=True).clamp_max_(within.shape[1] - 1)
        return rows, graph.indices[rows].gather(1, slots.to(rows.device)).ravel().long()

    return edges


@dataclass(frozen=True)
class Neighborhoods(Batches, name="neighborhoods", follows_graph=True):
    """Random rows, each with some of its neighbors; the batch gets the weights among all of them."""

    centers: int = 250
    neighbors: int = 9
    capturable = True

    def __post_init__(self) -> None:
        _check_size(self.centers * (1 + self.neighbors))
        if self.neighbors < 1:
            raise ValueError(f"neighbors={self.neighbors}: each center needs at least one")

    def resized(self, size: int) -> Neighborhoods:
        return Neighborhoods(max(1, size // (1 + self.neighbors)), self.neighbors)

    @property
    def rows(self) -> int:
        return self.centers * (1 + self.neighbors)

    def steps(self, n: int) -> int:
        return math.ceil(n / (self.centers * (1 + self.neighbors)))

    def sampler(self, target: Target, n: int, streams: RandomStreams) -> Sampler:
        graph = _check_graph(target, self)

        def sample(epoch: int) -> Iterator[LazyBatch]:
            generator = streams.generator("batches", epoch)
            return (self._sample_one(graph, n, generator) for _ in range(self.steps(n)))

        return sample

    def _sample_one(self, graph: Graph, n: int, generator: torch.Generator) -> LazyBatch:
        device, k = generator.device, graph.indices.shape[1]
        rows = torch.randint(n, (self.centers,), generator=generator, device=device)
        slots = torch.randint(k, (self.centers, self.neighbors), generator=generator, device=device)
        ids = torch.cat([rows, graph.indices[rows].gather(1, slots).ravel().long()]).unique()
        return presampled(ids, graph.block(ids))


@dataclass(frozen=True)
class Auto(Batches, name="auto"):
    """Shuffled batches while a row meets at least one of its neighbors in them (k·size/n ≥ 1), sampled edges beyond."""

    size: int = 2500
    capturable = True

    def __post_init__(self) -> None:
        _check_size(self.size)

    @property
    def rows(self) -> int:
        return self.size

    def steps(self, n: int) -> int:
        return _parts(n, self.size)  # of shuffled batches, which targets inside the batch get

    def select(self, target: Target, n: int) -> Batches:
        if target.k is None or target.k * self.size >= n:
            return Shuffled(self.size)
        return Edges(max(2, self.size // 2))


def _parts(n: int, size: int) -> int:
    """Number of batches of at most ``size`` rows, or of one more where the last would hold a single row."""
    return max(1, min(math.ceil(n / size), n // 2))


def _evenly(ids: Tensor, parts: int) -> tuple[Tensor, ...]:
    """Split into parts whose sizes differ by one at most: no batch is a leftover of one row."""
    return torch.tensor_split(ids, parts)


def _check_graph(target: Target, batches: Batches) -> Graph:
    if not isinstance(target, Graph):
        batches.check_scope("batch")
        raise TypeError(f"{batches} needs a Graph, not {type(target).__name__}")
    return target


def _check_size(size: int) -> None:
    if size < 2:
        raise ValueError(f"batch_size={size}: a batch needs at least 2 rows")
