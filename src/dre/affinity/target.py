"""What the map must match: the weights of pairs, over one graph of all rows or inside each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dre.affinity import Affinity
from dre.neighbors.distances import pairwise_distances
from dre.neighbors.search import Neighbors


class Pairs(NamedTuple):
    """Weights among the rows of a batch; **each pair stands once**, so that sums over i ≠ j are twice the sum over these.

    ``near`` (b, k) holds positions in the batch, the row's own with weight 0 where a neighbour is not in it; its shape depends
    on the batch size alone, so that a device never waits for the host. ``None`` means every position: the weights are (b, b),
    zero on and below the diagonal.
    """

    near: Tensor | None
    weight: Tensor

    def at(self, values: Tensor) -> Tensor:
        """The entries of a (b, b) matrix that belong to the weights."""
        return values if self.near is None else values.gather(1, self.near)

    def dense(self, b: int) -> Tensor:
        """The whole symmetric (b, b) matrix."""
        if self.near is None:
            once = self.weight
        else:
            once = torch.zeros(b, b, dtype=self.weight.dtype, device=self.weight.device)
            once = once.scatter_add(1, self.near, self.weight)
        return once + once.T


class Target(Protocol):
    k: int | None  # neighbours of a row over all rows; None where there is no graph

    def block(self, ids: Tensor) -> Pairs:
        """The pairs among these rows; the ids must differ."""


class SearchInfo(NamedTuple):
    """How the neighbours of a graph were found."""

    method: str
    recall: float = 1.0
    parts: int = 1  # of the rows, among each of which they were sought


class Graph:
    """One sparse symmetric matrix over all rows, of which a batch gets its sub-block.

    Each pair is stored once, at a row that chose it: ``indices`` and ``weight`` are (n, k), and ``weight`` is 0 where the
    same pair stands at the other row.
    """

    def __init__(self, indices: Tensor, weight: Tensor, found: SearchInfo) -> None:
        self.indices, self.weight, self.found = indices, weight, found
        self.k: int | None = indices.shape[1]
        # Where each row stands in the batch, -1 where it is not in it.
        self._position = torch.full((len(indices),), -1, dtype=torch.long, device=indices.device)

    @classmethod
    def of(cls, affinity: Affinity, neighbors: Neighbors) -> Graph:
        indices, distances, method, recall = neighbors
        weight = _each_pair_once(affinity, indices, affinity.conditional(distances))
        return cls(indices, weight, SearchInfo(method, recall))

    @classmethod
    def joined(cls, parts: Sequence[tuple[Tensor, Graph]]) -> Graph:
        """One graph of several, which have as many neighbours: those of some rows each, which these ids number among all."""
        n, first = sum(len(ids) for ids, _ in parts), parts[0][1]
        recall = min(graph.found.recall for _, graph in parts)
        shape = (n, first.indices.shape[1])
        whole = cls(
            first.indices.new_empty(shape), first.weight.new_empty(shape), SearchInfo(first.found.method, recall, len(parts))
        )
        for ids, graph in parts:
            whole.indices[ids], whole.weight[ids] = ids[graph.indices], graph.weight
        return whole

    def block(self, ids: Tensor) -> Pairs:
        own = torch.arange(len(ids), device=ids.device)
        self._position.index_copy_(0, ids, own)
        near = self._position[self.indices[ids]]
        self._position.index_fill_(0, ids, -1)
        away = near < 0
        return Pairs(near.where(~away, own[:, None]), self.weight[ids].masked_fill(away, 0.0))


class InBatch:
    """The paper's target: neighbours sought among the rows of the batch alone, by the features of the stage's source."""

    k: int | None = None

    def __init__(self, affinity: Affinity, features: Tensor) -> None:
        self.affinity = affinity
        self.features = features

    def block(self, ids: Tensor) -> Pairs:
        b = len(ids)
        affinity = self.affinity.clamp_to(b)
        features = self.features[ids]
        distances = pairwise_distances(features, features).fill_diagonal_(torch.inf)
        nearest, near = distances.topk(affinity.neighbors(b), largest=False, sorted=True)
        directed = torch.zeros(b, b, dtype=torch.double, device=ids.device)
        directed.scatter_(1, near, affinity.conditional(nearest))
        return Pairs(None, affinity.combine(directed, directed.T).triu(1).float())


def _each_pair_once(affinity: Affinity, indices: Tensor, directed: Tensor) -> Tensor:
    """Symmetric weights (n, k) at the slots of a directed graph, zero at the second slot of a pair that has two."""
    n, k = indices.shape
    row = torch.arange(n, device=indices.device)[:, None].expand(n, k)
    there, wanted = (row * n + indices).ravel().sort(), (indices * n + row).ravel().sort()
    found = torch.searchsorted(there.values, wanted.values).clamp_max(n * k - 1)  # in order, so that it stays in the cache
    slot = torch.empty_like(found)
    slot[wanted.indices] = torch.where(there.values[found] == wanted.values, there.indices[found], -1)
    mutual = (slot >= 0).view(n, k)
    back = directed.ravel()[slot.clamp_min(0)].view(n, k) * mutual
    return affinity.combine(directed, back).masked_fill(mutual & (row > indices), 0.0).float()
