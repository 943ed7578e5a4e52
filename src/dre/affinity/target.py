"""Targets of the embedding: weights of pairs, in one graph of all rows or inside each batch, or coordinates to follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dre.affinity import Affinity
from dre.neighbors.distances import pairwise_distances
from dre.neighbors.search import Neighbors
from dre.runtime import has_numba
from dre.runtime.float64 import near_float64
from dre.runtime.scratch import empty

SYMMETRIZED = {"cpu": 2**18, "cuda": 2**24}  # pairs that are symmetrized at a time: each needs some 50 bytes


class BatchCoordinates(NamedTuple):
    """The coordinates that the rows of a batch should have in the map."""

    at: Tensor  # (b, n_components)

    @property
    def varying(self) -> tuple[Tensor, ...]:
        return (self.at,)

    def with_varying(self, *parts: Tensor) -> BatchCoordinates:
        return BatchCoordinates(*parts)


class Pairs(NamedTuple):
    """Weights among the rows of a batch. **Each pair stands once**: sums over i ≠ j are twice the sum over these.

    ``near`` (b, k) holds positions in the batch, and a row's own position with weight 0 where a neighbor is not in the batch.
    Its shape depends on the batch size alone, so that a device never waits for the host. ``None`` means all positions: the
    weights are then (b, b), zero on and below the diagonal.
    """

    near: Tensor | None
    weight: Tensor

    @property
    def varying(self) -> tuple[Tensor, ...]:
        return (self.weight,) if self.near is None else (self.near, self.weight)

    def with_varying(self, *parts: Tensor) -> Pairs:
        return Pairs(None, *parts) if self.near is None else Pairs(*parts)

    @property
    def total(self) -> Tensor:
        """Σ w over i ≠ j."""
        return 2 * self.weight.sum()

    @property
    def entropy(self) -> Tensor:
        """Σ w log w over i ≠ j."""
        return 2 * self.weight.xlogy(self.weight).sum()

    def at(self, values: Tensor) -> Tensor:
        """Select the entries of a (b, b) matrix that belong to the weights."""
        return values if self.near is None else values.gather(1, self.near)

    @classmethod
    def joined(cls, near: Tensor | None, weight: Tensor, parts: int) -> Pairs:
        """Return the pairs of several batches, one after the other, in which no pair joins two of them.

        >>> Pairs.joined(torch.tensor([[1], [0], [1], [0]]), torch.ones(4, 1), parts=2).near.ravel().tolist()
        [1, 0, 3, 2]
        """
        b = len(weight) // parts
        if near is None:
            return cls(None, torch.block_diag(*weight.split(b)))
        return cls(near + (torch.arange(len(near), device=near.device) // b * b)[:, None], weight)

    def dense(self, b: int) -> Tensor:
        """Return the whole symmetric (b, b) matrix."""
        if self.near is None:
            once = self.weight
        else:
            once = torch.zeros(b, b, dtype=self.weight.dtype, device=self.weight.device)
            once = once.scatter_add(1, self.near, self.weight)
        return once + once.T


class Block(Protocol):
    """What a step matches."""

    @property
    def varying(self) -> tuple[Tensor, ...]:
        """The tensors that differ from batch to batch."""

    def with_varying(self, *parts: Tensor) -> Block:
        """Return a block that differs in these alone."""


class Target(Protocol):
    """What an embedding must match."""

    k: int | None  # neighbors of a row, of which a batch should hold some; None if it need not
    capturable: bool  # whether ``block`` can be captured in a CUDA graph

    def block(self, ids: Tensor) -> Block:
        """Return what a step matches for these rows; the ids must differ."""


class Coordinates:
    """Coordinates of all rows, which the encoder follows by regression.

    Parameters
    ----------
    values : Tensor of shape (n, n_components)
    first : int, default=0
        Row that has the id 0: the first one of this process, if several train on the rows.
    """

    k: int | None = None
    capturable = True

    def __init__(self, values: Tensor, first: int = 0) -> None:
        self.values, self._first = values, first

    def block(self, ids: Tensor) -> BatchCoordinates:
        return BatchCoordinates(self.values[ids + self._first if self._first else ids])


class SearchInfo(NamedTuple):
    """How the neighbors of a graph were found."""

    method: str
    recall: float = 1.0
    parts: int = 1  # number of disjoint parts of the rows that were searched separately


class Links(NamedTuple):
    """The neighbors of every row, one row after the other: those of row i lie from ``start[i]`` to ``start[i + 1]``."""

    start: Tensor  # (n + 1,) long
    others: Tensor  # int, ids of neighbors
    weight: Tensor  # float


class Graph:
    """One sparse symmetric matrix over all rows, of which a batch gets a sub-block.

    Each pair is stored once, at a row that lists the other as a neighbor: ``indices`` and ``weight`` are (n, k), and ``weight``
    is 0 where the same pair is stored at the other row. Indices are int64 or int32, weights float32 or float16.
    """

    capturable = True

    def __init__(self, indices: Tensor, weight: Tensor, search: SearchInfo) -> None:
        self.indices, self.weight, self.search = indices, weight, search
        self.k: int | None = indices.shape[1]
        self._position = torch.full((len(indices),), -1, dtype=torch.long, device=indices.device)  # in a batch; -1: not in it

    @classmethod
    def of(cls, affinity: Affinity, neighbors: Neighbors) -> Graph:
        """Weight the edges from each row to its neighbors by an affinity."""
        indices, distances, method, recall = neighbors
        weight = _store_once(affinity, near_float64(indices), affinity.conditional(near_float64(distances))).to(indices.device)
        return cls(indices, weight, SearchInfo(method, recall))

    @classmethod
    def joined(cls, parts: Iterable[tuple[Tensor, Graph]], n: int, *, compact: bool = False) -> Graph:
        """Merge graphs of disjoint subsets of n rows; the ids of each map its local rows to global ones.

        Parameters
        ----------
        parts : iterable of (ids, Graph)
            One part after the other: those that were merged are not kept.
        n : int
        compact : bool, default=False
            Indices of 4 bytes and weights of 2 instead of 8 and 4: for graphs that fill the memory. float16 rounds weights from
            2**-14 on by less than one part in 2000, and smaller ones, which hardly count, by less than 3e-8. On a CPU, large
            arrays go to scratch files.
        """
        indices = weight = torch.empty(0)
        searches: list[SearchInfo] = []
        for ids, graph in parts:
            if not searches:
                shape = (n, graph.indices.shape[1])
                dtypes = (torch.int32 if n < 2**31 else torch.int64, torch.float16) if compact else (torch.int64, torch.float32)
                indices, weight = (_storage(shape, dtype, ids.device) for dtype in dtypes)
            searches.append(graph.search)
            indices[ids], weight[ids] = ids.to(indices.dtype)[graph.indices], graph.weight.to(weight.dtype)
        recall = min(search.recall for search in searches)
        return cls(indices, weight, SearchInfo(searches[0].method, recall, len(searches)))

    @property
    def nbytes(self) -> int:
        """Bytes of indices and weights."""
        return self.indices.nbytes + self.weight.nbytes

    @classmethod
    def empty(cls, k: int, device: torch.device) -> Graph:
        """Return a graph without rows, for a process that leaves it to another."""
        return cls(
            torch.empty(0, k, dtype=torch.long, device=device), torch.empty(0, k, device=device), SearchInfo("elsewhere")
        )

    @cached_property
    def links(self) -> Links:
        """The links of every row, each pair at both of its ends."""
        heads, slots = self.weight.nonzero(as_tuple=True)
        tails, weight = self.indices[heads, slots].long(), self.weight[heads, slots].float()
        n = len(self.indices)
        if self.indices.device.type == "cpu":
            from scipy.sparse import csr_array  # it merges in one pass what torch would have to sort

            once = csr_array((weight.numpy(), (heads.int().numpy(), tails.int().numpy())), (n, n))
            matrix = once + once.T
            return Links(*map(torch.from_numpy, (matrix.indptr.astype("int64"), matrix.indices.astype("int32"), matrix.data)))
        key = torch.cat([heads * n + tails, tails * n + heads])
        del heads, slots, tails  # of a hundred million pairs each takes a gigabyte
        key, order = key.sort()
        start = torch.searchsorted(key, torch.arange(n + 1, device=key.device) * n)
        return Links(start, (key % n).int(), weight.repeat(2)[order])

    def block(self, ids: Tensor) -> Pairs:
        own = torch.arange(len(ids), device=ids.device)
        self._position.index_copy_(0, ids, own)
        near = self._position[self.indices[ids].long()]
        self._position.index_fill_(0, ids, -1)
        absent = near < 0
        return Pairs(near.where(~absent, own[:, None]), self.weight[ids].float().masked_fill(absent, 0.0))


class InBatch:
    """The paper's target: neighbors among the rows of the batch alone, by the features of the stage's source."""

    k: int | None = None
    capturable = False  # the bandwidth search inside a batch has a number of rounds that the host counts

    def __init__(self, affinity: Affinity, features: Tensor) -> None:
        self.affinity = affinity
        self.features = features

    def block(self, ids: Tensor) -> Pairs:
        b = len(ids)
        affinity = self.affinity.clamp_to(b)
        features = near_float64(self.features[ids])
        distances = pairwise_distances(features, features).fill_diagonal_(torch.inf)
        nearest, near = distances.topk(affinity.count_neighbors(b), largest=False, sorted=True)
        directed = torch.zeros(b, b, dtype=torch.double, device=features.device)
        directed.scatter_(1, near, affinity.conditional(nearest))
        return Pairs(None, affinity.combine(directed, directed.T).triu(1).float().to(ids.device))


def _storage(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    if device.type == "cpu":
        return empty(shape, dtype, what="the neighbors of all rows")
    return torch.empty(shape, dtype=dtype, device=device)


def _store_once(affinity: Affinity, indices: Tensor, directed: Tensor) -> Tensor:
    """Symmetrize the weights (n, k) of a directed graph; the second slot of a pair with two slots becomes zero."""
    n, k = indices.shape
    row = torch.arange(n, device=indices.device)[:, None]
    out = torch.empty(n, k, device=indices.device)
    held = SYMMETRIZED.get(indices.device.type, SYMMETRIZED["cuda"])
    step = max(1, held // k)
    for part, slot in _reverse_slots(indices, [slice(start, start + step) for start in range(0, n, step)]):
        own, theirs, forth = row[part], indices[part], directed[part]
        mutual = slot >= 0
        back = directed.ravel()[slot.clamp_min(0)] * mutual
        out[part] = affinity.combine(forth, back).masked_fill(mutual & (own > theirs), 0.0).float()
    return out


def _reverse_slots(indices: Tensor, parts: list[slice]) -> Iterator[tuple[slice, Tensor]]:
    """For parts of the rows, yield where each neighbor lists the row: positions in the flat (n, k) array, or -1."""
    n, k = indices.shape
    if indices.device.type == "cpu" and has_numba():
        from dre.affinity.numba.reverse_slots import reverse_slots

        yield from ((part, reverse_slots(indices, part)) for part in parts)
        return
    row = torch.arange(n, device=indices.device)[:, None]
    there, slots = indices.sort(1)
    there, slots = (row * n + there).ravel(), (row * k + slots).ravel()
    for part in parts:
        theirs = indices[part]
        wanted = (theirs * n + row[part]).ravel().sort()
        found = torch.searchsorted(there, wanted.values).clamp_max(n * k - 1)  # sorted queries stay in the cache
        slot = torch.empty_like(found)
        slot[wanted.indices] = torch.where(there[found] == wanted.values, slots[found], -1)
        yield part, slot.view(theirs.shape)
