"""Who is nearer: exact neighbours in the order of (distance, index), so that ties are the same on every machine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dre.distances import ELEMENTS, TIE, Distances, both_ways

SPARE = 8  # extra candidates, so that rounding in a product can't push a true neighbour out
TREE_UP_TO = 4  # dimensions in which a tree beats looking at every pair, on a CPU


class Nearest(NamedTuple):
    indices: Tensor  # (m, k) long
    squared: Tensor  # (m, k) float64, as the differences give it, in units of the distances' own


class Candidates(NamedTuple):
    indices: Tensor  # (m, c)
    beyond: Tensor  # (m,) a squared distance that no other row is below; infinite where there are no others


def nearest_rows(distances: Distances, k: int) -> Nearest:
    """The k nearest others of every row."""
    everyone = torch.arange(distances.n, device=distances.device)
    if tree_is_quicker(distances, k):
        return _settled(distances, distances.rows, everyone, _by_tree(distances, distances.rows, everyone, k), k)
    gathered = Gathered(distances, k)
    for some, others in distances.half():
        both_ways(gathered.take, some, others, distances.block(some, others))
    return gathered.nearest()


def nearest_to(distances: Distances, points: Tensor, k: int, itself: Tensor | None = None) -> Nearest:
    """The k rows nearest to any points (m, d); ``itself``: the row that a point is, and that doesn't count."""
    points = points if distances.unit == 1 else points.double() / distances.unit
    if tree_is_quicker(distances, k):
        return _settled(distances, points, itself, _by_tree(distances, points, itself, k), k)
    return _by_whole_rows(distances, points, itself, k)


class Gathered:
    """The nearest rows of every row, from blocks of distances that come in any order."""

    def __init__(self, distances: Distances, k: int) -> None:
        self._distances, self._k = distances, k
        shape = (distances.n, min(distances.n - 1, k + SPARE))
        self._squared = torch.full(shape, torch.inf, dtype=distances.dtype, device=distances.device)
        self._indices = torch.zeros(shape, dtype=torch.long, device=distances.device)

    def take(self, some: slice, others: slice, block: Tensor) -> None:
        wide = self._indices.shape[1]
        new, columns = _below(block, self._squared[some].amax(1), wide)
        squared = torch.cat([self._squared[some], new], dim=1)
        indices = torch.cat([self._indices[some], columns + others.start], dim=1)
        self._squared[some], at = squared.topk(wide, largest=False, sorted=False)
        self._indices[some] = indices.gather(1, at)

    def nearest(self) -> Nearest:
        distances = self._distances
        beyond = self._squared.amax(1).double().clamp_min(0)
        if self._indices.shape[1] == distances.n - 1:
            beyond.fill_(torch.inf)
        else:
            beyond -= distances.margin(distances.norms.sqrt(), beyond)
        everyone = torch.arange(distances.n, device=distances.device)
        return _settled(distances, distances.rows, everyone, Candidates(self._indices, beyond), self._k)


def _below(block: Tensor, bar: Tensor, wide: int) -> tuple[Tensor, Tensor]:
    """The values of each row that are below its bar, and their columns; the ``wide`` smallest where there is no bar yet."""
    if bool(bar.isinf().any()):
        return block.topk(min(wide, block.shape[1]), largest=False, sorted=False)
    rows, columns = (block < bar[:, None]).nonzero(
        as_tuple=True
    )  # few, and to find them is quicker than to select the smallest
    counts = rows.bincount(minlength=len(block))
    place = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    shape = (len(block), int(counts.max()))
    values, found = block.new_full(shape, torch.inf), rows.new_zeros(shape)
    values[rows, place], found[rows, place] = block[rows, columns], columns
    return values, found


def _settled(distances: Distances, points: Tensor, itself: Tensor | None, candidates: Candidates, k: int) -> Nearest:
    """The first k of the candidates; of all rows, where one that is no candidate might be as near."""
    indices, squared = in_order(distances.direct(points, candidates.indices), candidates.indices, k)
    doubt = squared[:, -1] * (1 + TIE) >= candidates.beyond
    if bool(doubt.any()):
        again = _by_whole_rows(distances, points[doubt], None if itself is None else itself[doubt], k)
        indices[doubt], squared[doubt] = again
    return Nearest(indices, squared)


def in_order(squared: Tensor, indices: Tensor, k: int) -> Nearest:
    """The first k in each row of (m, c) candidates by (distance, index)."""
    squared, at = squared.sort(dim=1)
    indices = indices.gather(1, at)
    further = squared[:, 1:] > squared[:, :-1] * (1 + TIE)
    level = torch.nn.functional.pad(further.cumsum(1), (1, 0))
    at = (level * (indices.max() + 1) + indices).argsort(dim=1)[:, :k]
    return Nearest(indices.gather(1, at), squared.gather(1, at))


def _by_whole_rows(distances: Distances, points: Tensor, itself: Tensor | None, k: int) -> Nearest:
    """In float64, with every row that rounding may have put too far among the candidates, however many tie."""
    parts = []
    step = max(1, ELEMENTS.get(distances.device.type, ELEMENTS["cpu"]) // distances.n)
    for ids in torch.arange(len(points), device=distances.device).split(step):
        squared = distances.from_points(points[ids])
        if itself is not None:
            squared[torch.arange(len(ids), device=ids.device), itself[ids]] = torch.inf
        reach = squared.topk(k, largest=False, sorted=False).values.amax(1).clamp_min(0)
        limit = reach * (1 + TIE) + 2 * distances.margin(distances.reach(points[ids]), reach, torch.double)
        wide = int((squared <= limit[:, None]).sum(1).max())
        near = squared.topk(wide, largest=False, sorted=False)
        true = distances.direct(points[ids], near.indices).masked_fill_(near.values > limit[:, None], torch.inf)
        parts.append(in_order(true, near.indices, k))
    return Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))


def tree_is_quicker(distances: Distances, k: int) -> bool:
    return distances.device.type == "cpu" and distances.dim <= TREE_UP_TO and k + SPARE < distances.n - 1


def _by_tree(distances: Distances, points: Tensor, itself: Tensor | None, k: int) -> Candidates:
    from scipy.spatial import cKDTree

    tree = cKDTree(distances.rows.double().numpy())
    reach, found = tree.query(points.double().numpy(), k=k + SPARE, workers=torch.get_num_threads())
    squared, indices = torch.from_numpy(reach).square(), torch.from_numpy(found)
    beyond = squared[:, -1] * (1 - TIE)
    if itself is not None:  # it is there, unless all that were found lie in the same place: then all rows are looked at
        others = (indices != itself[:, None]).double().argsort(dim=1, descending=True, stable=True)[:, :-1]
        indices = indices.gather(1, others)
    return Candidates(indices, beyond)
