"""Who is nearer: exact neighbours in the order of (distance, index), so that ties are the same on every machine."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from dre.neighbors.distances import TIE, Distances, with_transpose
from dre.runtime import triton_applies

SPARE = 8  # extra candidates, so that rounding in a product can't push a true neighbour out
SPARE_SHORT = 24  # where products are short: with few, many rows would be left in doubt
TREE_UP_TO = 4  # dimensions in which a tree beats looking at every pair, on a CPU
WHOLE = {"cuda": 2**28, "cpu": 2**23}  # distances from some points to all rows that are held at once


class Nearest(NamedTuple):
    indices: Tensor  # (m, k) long
    squared: Tensor  # (m, k) float64, as the differences give it; of ``Distances.rows``, in their unit


class Points(NamedTuple):
    """Whose neighbours are sought."""

    places: Tensor  # (m, d)
    itself: Tensor | None  # (m,) the row that a point is, and that doesn't count as its neighbour

    def some(self, which: Tensor) -> Points:
        return Points(self.places[which], None if self.itself is None else self.itself[which])


class Candidates(NamedTuple):
    indices: Tensor  # (m, c)
    beyond: Tensor  # (m,) a squared distance that no other row is below; infinite where there are no others


def nearest_rows(distances: Distances, k: int) -> Nearest:
    """The k nearest others of every row."""
    if tree_is_quicker(distances, k):
        return _by_tree(distances, _everyone(distances), k)
    found = KNearest(distances, k)
    picking = _candidate_buffer(distances, found)
    take = partial(with_transpose, found.take) if picking is None else picking.take
    for some, others in distances.half():
        take(some, others, distances.block(some, others))
    if picking is not None:
        picking.finish()
    return found.nearest()


def nearest_to(distances: Distances, places: Tensor, k: int, itself: Tensor | None = None) -> Nearest:
    """The k rows nearest to any points (m, d); ``itself``: the row that a point is, and that doesn't count."""
    points = Points(places if distances.unit == 1 else places.double() / distances.unit, itself)
    if tree_is_quicker(distances, k):
        return _by_tree(distances, points, k)
    found = KNearest(distances, k, points)
    for part in distances.tiles():
        found.take(slice(None), part, _without_itself(distances.from_points(points.places, part), itself, part))
    return found.nearest()


def tree_is_quicker(distances: Distances, k: int) -> bool:
    return distances.device.type == "cpu" and distances.dim <= TREE_UP_TO and k + SPARE < distances.n - 1


class KNearest:
    """The nearest rows of every row, or of other points, from blocks of distances that come in any order."""

    def __init__(self, distances: Distances, k: int, points: Points | None = None) -> None:
        self._distances, self._k = distances, k
        self._points = _everyone(distances) if points is None else points
        self._dtype = distances.dtype if points is None else torch.double
        others = distances.n - (self._points.itself is not None)
        wanted = k + (SPARE_SHORT if distances.is_short and points is None else SPARE)
        self._all_fit = others <= wanted
        shape = (len(self._points.places), min(others, wanted))
        self._squared = torch.full(shape, torch.inf, dtype=self._dtype, device=distances.device)
        self._indices = torch.zeros(shape, dtype=torch.long, device=distances.device)

    def thresholds(self, some: slice) -> Tensor:
        """Of some rows: what is not below is not among the nearest."""
        return self._squared[some].amax(1)

    def take(self, some: slice, others: slice, block: Tensor) -> None:
        new, columns = _below(block, self.thresholds(some), self._indices.shape[1])
        self.merge(some, new, columns + others.start)

    def merge(self, some: slice, squared: Tensor, indices: Tensor) -> None:
        """Keep the nearest of what was found for some rows and of these (some, c)."""
        squared = torch.cat([self._squared[some], squared], dim=1)
        indices = torch.cat([self._indices[some], indices], dim=1)
        self._squared[some], at = squared.topk(self._indices.shape[1], largest=False, sorted=False)
        self._indices[some] = indices.gather(1, at)

    def nearest(self) -> Nearest:
        beyond = self._squared.amax(1).double().clamp_min(0)
        if self._all_fit:
            beyond.fill_(torch.inf)
        else:
            beyond -= self._distances.margin(_reach(self._distances, self._points), beyond, self._dtype)
        return _verify(self._distances, self._points, Candidates(self._indices, beyond), self._k)


def _candidate_buffer(distances: Distances, found: KNearest) -> CandidateBuffer | None:
    """The quicker way on a GPU to take a block both ways, where it can be gone."""
    if not triton_applies(distances.rows) or distances.dtype != torch.float32:
        return None
    return CandidateBuffer(distances, found)


def in_order(squared: Tensor, indices: Tensor, k: int) -> Nearest:
    """The first k in each row of (m, c) candidates by (distance, index)."""
    squared, at = squared.sort(dim=1)
    indices = indices.gather(1, at)
    further = squared[:, 1:] > squared[:, :-1] * (1 + TIE)
    step = torch.nn.functional.pad(further.cumsum(1), (1, 0))
    at = (step * (indices.max() + 1) + indices).argsort(dim=1)[:, :k]
    return Nearest(indices.gather(1, at), squared.gather(1, at))


def _everyone(distances: Distances) -> Points:
    return Points(distances.rows, torch.arange(distances.n, device=distances.device))


def _reach(distances: Distances, points: Points) -> Tensor:
    return distances.norms.sqrt() if points.places is distances.rows else distances.reach(points.places)


def _without_itself(squared: Tensor, itself: Tensor | None, part: slice) -> Tensor:
    if itself is not None:
        there = ((itself >= part.start) & (itself < part.stop)).nonzero().ravel()
        squared[there, itself[there] - part.start] = torch.inf
    return squared


def _below(block: Tensor, bar: Tensor, wide: int) -> tuple[Tensor, Tensor]:
    """The values of each row that are below its bar, and their columns; the ``wide`` smallest where there is no bar yet."""
    if bool(bar.isinf().any()):
        return block.topk(min(wide, block.shape[1]), largest=False, sorted=False)
    # They are few, and to find them is quicker than to select the smallest.
    rows, columns = (block < bar[:, None]).nonzero(as_tuple=True)
    counts = rows.bincount(minlength=len(block))
    place = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    shape = (len(block), int(counts.max()))
    values, found = block.new_full(shape, torch.inf), rows.new_zeros(shape)
    values[rows, place], found[rows, place] = block[rows, columns], columns
    return values, found


def _verify(distances: Distances, points: Points, candidates: Candidates, k: int) -> Nearest:
    """The first k of the candidates; of all rows, where one that is no candidate might be as near."""
    indices, squared = in_order(distances.direct(points.places, candidates.indices), candidates.indices, k)
    doubt = squared[:, -1] * (1 + TIE) >= candidates.beyond
    if bool(doubt.any()):
        indices[doubt], squared[doubt] = _by_whole_rows(distances, points.some(doubt), k)
    return Nearest(indices, squared)


def _by_whole_rows(distances: Distances, points: Points, k: int) -> Nearest:
    """In float64, with every row that rounding may have put too far among the candidates, however many tie."""
    parts = []
    step = max(1, WHOLE.get(distances.device.type, WHOLE["cpu"]) // distances.n)
    for ids in torch.arange(len(points.places), device=distances.device).split(step):
        places, itself = points.some(ids)
        squared = _without_itself(distances.from_points(places), itself, slice(0, distances.n))
        farthest = squared.topk(k, largest=False, sorted=False).values.amax(1).clamp_min(0)
        limit = farthest * (1 + TIE) + 2 * distances.margin(distances.reach(places), farthest, torch.double)
        wide = int((squared <= limit[:, None]).sum(1).max())
        near = squared.topk(wide, largest=False, sorted=False)
        true = distances.direct(places, near.indices).masked_fill_(near.values > limit[:, None], torch.inf)
        parts.append(in_order(true, near.indices, k))
    return Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _by_tree(distances: Distances, points: Points, k: int) -> Nearest:
    from scipy.spatial import cKDTree

    tree = cKDTree(distances.rows.double().numpy())
    found, indices = tree.query(points.places.double().numpy(), k=k + SPARE, workers=torch.get_num_threads())
    squared, indices = torch.from_numpy(found).square(), torch.from_numpy(indices)
    if points.itself is not None:  # it is there, unless all that were found lie in the same place: then all rows are looked at
        others = (indices != points.itself[:, None]).double().argsort(dim=1, descending=True, stable=True)[:, :-1]
        indices = indices.gather(1, others)
    return _verify(distances, points, Candidates(indices, squared[:, -1] * (1 - TIE)), k)


ROOM = 256  # picked values that are kept for a row until they are merged
FULL = ROOM // 2  # that are merged before the next block: it may hold as many again
Side = tuple[slice, slice, Tensor]  # whose neighbours are sought, among whom, and their distances


class CandidateBuffer:
    """What is below the bar of its row waits until there is much of it, and is then merged into what was found."""

    def __init__(self, distances: Distances, found: KNearest) -> None:
        from dre.neighbors.triton.select_below import Selected

        self._found = found
        self._waiting = Selected.none(distances.n, ROOM, distances.device)
        self._bars = torch.full((distances.n,), torch.inf, device=distances.device)
        self._has_bar: set[int] = set()  # by where a stretch begins
        self._stretches = distances.tiles()

    def take(self, some: slice, others: slice, block: Tensor) -> None:
        """A block of distances, and its transpose."""
        sides = [(some, others, block)] + ([(others, some, block.T)] if some != others else [])
        new = [side for side in sides if side[0].start not in self._has_bar]
        ready = [side for side in sides if side[0].start in self._has_bar]
        if ready and not self._picked(some, others, block, ready):
            new = sides
        for mine, theirs, distances in new:
            self._merge_waiting(mine)
            self._found.take(mine, theirs, distances)
            self._set_bars(mine)

    def finish(self) -> None:
        """Merge all that still waits."""
        for part in self._stretches:
            self._merge_waiting(part)

    def _picked(self, some: slice, others: slice, block: Tensor, sides: list[Side]) -> bool:
        """False where there was no room for all; then nothing was picked."""
        from dre.neighbors.triton.select_below import Thresholds, pick

        counts = [self._waiting.counts[mine] for mine, _, _ in sides]
        before = [count.clone() for count in counts]
        thresholds = {
            mine.start: Thresholds(self._bars[mine], self._waiting.of(mine), theirs.start) for mine, theirs, _ in sides
        }
        pick(block, thresholds.get(some.start), thresholds.get(others.start) if some != others else None)
        most = torch.stack([count.max() for count in counts]).tolist()
        if max(most) > ROOM:
            for count, old in zip(counts, before, strict=True):
                count.copy_(old)
            return False
        for (mine, _, _), full in zip(sides, most, strict=True):
            if full > FULL:
                self._merge_waiting(mine)
                self._set_bars(mine)
        return True

    def _merge_waiting(self, some: slice) -> None:
        values, ids, counts = self._waiting.of(some)
        most = int(counts.max())
        if most:
            empty = torch.arange(most, device=counts.device) >= counts[:, None]
            self._found.merge(some, values[:, :most].masked_fill(empty, torch.inf), ids[:, :most].long())
            counts.zero_()

    def _set_bars(self, some: slice) -> None:
        self._bars[some] = self._found.thresholds(some)
        self._has_bar.add(some.start)
