"""The bank: the latest coordinates of all rows in the map, against which a batch is matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Graph, Links

REPELLING = 20_000  # rows that tell well enough how the others repel a batch


class BankPairs(NamedTuple):
    """The rows of a batch, each with all its neighbors and with all rows, wherever they lie in the map at present.

    Sums over i ≠ j of all rows are estimated from those over the rows i of the batch and every j.
    """

    ids: Tensor  # (b,)
    coordinates: Tensor  # (n_components, n), one component after the other: kernels read them so
    start: Tensor  # links of all rows
    others: Tensor
    weight: Tensor
    total: Tensor  # Σ w over i ≠ j of all rows
    entropy: Tensor  # Σ w log w
    exaggeration: float = 1.0  # by which the weights, but not their sums, are multiplied
    values: bool = True  # whether sums are wanted, and not their gradients alone
    on_grid: bool = False  # sum over all rows on a grid: the batch is all rows, in their order
    every: int = 1  # sum over one row in so many instead of all
    offset: Tensor | None = None  # the first of these rows; None: it depends on the first row of the batch
    landmarks: Landmarks | None = None  # for losses that read them

    @property
    def varying(self) -> tuple[Tensor, ...]:
        return (self.ids,)

    @property
    def first(self) -> Tensor:
        """The first row of those that sums over all rows visit, from 0 to ``every - 1``."""
        return self.ids[0] % self.every if self.offset is None else self.offset

    def with_varying(self, *parts: Tensor) -> BankPairs:
        return self._replace(ids=parts[0])


def one_in(n: int, enough: int) -> int:
    """Return how many rows one row can stand for, so that at least ``enough`` of n are left."""
    return max(1, n // enough)


class OwnLinks(NamedTuple):
    """The links of the rows that one process trains, where several processes have a bank of the same rows."""

    first: int  # number of its first row among those of all processes
    links: Links  # of its own rows; those of others are empty
    total: Tensor  # Σ w of all rows
    entropy: Tensor  # Σ w log w of all rows
    gather: Callable[[Tensor], Tensor]  # joins a tensor with those of the other processes


class Bank:
    """A target that holds the latest coordinates of all rows. All neighbors of a row attract it, and all rows repel.

    The coordinates of the rows of a batch are renewed when it has passed through the encoder. Of very many rows, a part repels
    each batch: one in every few, from a row on that depends on the batch.

    Parameters
    ----------
    graph : Graph
    coordinates : Tensor of shape (n, n_components)
        Where the encoder has put the rows.
    landmarks : Landmarks, optional
        For losses that read them.
    own : OwnLinks, optional
        In place of the graph's own links; ``graph`` may then be empty. Ids count the rows of this process.
    """

    k: int | None = None
    capturable = True

    def __init__(
        self, graph: Graph, coordinates: Tensor, landmarks: Landmarks | None = None, own: OwnLinks | None = None
    ) -> None:
        self.graph, self.landmarks, self._own = graph, landmarks, own
        self.links: Links = graph.links if own is None else own.links
        weight = self.links.weight
        self.total, self.entropy = (weight.sum(), weight.xlogy(weight).sum()) if own is None else (own.total, own.entropy)
        self.columns = coordinates.T.float().clone(memory_format=torch.contiguous_format)  # its own: it changes

    def block(self, ids: Tensor) -> BankPairs:
        every = one_in(self.columns.shape[1], REPELLING)
        ids = ids if self._own is None else ids + self._own.first
        return BankPairs(ids, self.columns, *self.links, self.total, self.entropy, every=every, landmarks=self.landmarks)

    def renew(self, ids: Tensor, y: Tensor) -> None:
        """Remember where the encoder has put these rows."""
        y = y.detach().float()
        if self._own is not None:  # in one exchange: the bits of an id as those of two more columns
            numbers = (ids + self._own.first)[:, None].view(torch.float32)
            both = self._own.gather(torch.cat([numbers, y], 1))
            ids, y = both[:, :2].contiguous().view(torch.int64)[:, 0], both[:, 2:]
        self.columns.index_copy_(1, ids, y.T)
