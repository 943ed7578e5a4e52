"""Exact nearest neighbors in the order of (distance, index), so that ties are resolved alike on every machine.

Products of blocks propose candidates, a few more than k. The candidates are then sorted by their direct distances. Where the
rounding of the products might have hidden a neighbor, all rows are compared in float64.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from dre.neighbors.distances import TIE, PairDistances, with_transpose
from dre.progress.activity import activity
from dre.runtime import full_float32, triton_applies
from dre.runtime.gpu_memory import piece
from dre.runtime.threads import map_in_threads, thread_count

SPARE = 8  # extra candidates, so that the rounding of a product can't push out a true neighbor
SPARE_TF32 = 24  # with fewer, many rows would have to be compared with all others again
TREE_UP_TO = 4  # dimensions in which a k-d tree is faster than comparing every pair, on a CPU
WHOLE = {"cuda": 2**28, "cpu": 2**23}  # distances from some points to all rows that are held at once
CAPACITY = 256  # candidates that wait for a row until they are merged
FULL = CAPACITY // 2  # merged before the next block, which may add as many again


class Nearest(NamedTuple):
    """The nearest rows of each point, nearest first."""

    indices: Tensor  # (m, k) long
    squared: Tensor  # (m, k) float64, summed over the differences of ``Distances.rows``, in their unit


class Queries(NamedTuple):
    """The points whose neighbors are searched."""

    points: Tensor  # (m, d)
    exclude: Tensor | None  # (m,) id of the row that a point is, which is not its own neighbor

    def select(self, which: Tensor) -> Queries:
        return Queries(self.points[which], None if self.exclude is None else self.exclude[which])


class Candidates(NamedTuple):
    """Rows that may be the nearest of each point."""

    indices: Tensor  # (m, c)
    beyond: Tensor  # (m,) lower bound on the squared distances of all other rows; infinite if there are none


def nearest_rows(distances: PairDistances, k: int, title: str = "finding neighbors") -> Nearest:
    """Find the k nearest other rows of every row.

    Parameters
    ----------
    distances : PairDistances
    k : int
        From 1 to n - 1.
    title : str, default="finding neighbors"
        What the progress bar says.

    Returns
    -------
    Nearest
        Indices and squared distances, each (n, k).

    Examples
    --------
    >>> from dre.neighbors.distances import Distances
    >>> nearest_rows(Distances(torch.tensor([[0.0], [1.0], [3.0]])), 1).indices.ravel().tolist()
    [1, 0, 1]
    """
    if tree_is_quicker(distances, k):
        return _by_tree(distances, _all_rows(distances), k)
    found = KNearest(distances, k)
    buffer = CandidateBuffer(distances, found) if _kernels_apply(distances) else None
    update = partial(with_transpose, found.update) if buffer is None else buffer.update

    def visit(block: tuple[slice, slice]) -> None:
        update(*block, distances.block(*block))

    on_cpu, rounds = distances.device.type == "cpu", distances.rounds()
    # Full precision is a setting of the process: threads that set and reset it would get into each other's way.
    with full_float32() if on_cpu else nullcontext(), activity(title, len(rounds)) as search:
        for blocks in rounds:
            list(map_in_threads(visit, blocks) if on_cpu else map(visit, blocks))
            search.advance()
    if buffer is not None:
        buffer.flush()
    return found.nearest()


def nearest_to(distances: PairDistances, points: Tensor, k: int, exclude: Tensor | None = None) -> Nearest:
    """Find the k rows nearest to any points.

    Parameters
    ----------
    distances : PairDistances
    points : Tensor of shape (m, d)
    k : int
    exclude : Tensor of shape (m,), optional
        The id of the row that each point is, where the points are rows themselves; it is not counted as a neighbor.

    Returns
    -------
    Nearest
        Indices and squared distances, each (m, k).

    Examples
    --------
    >>> from dre.neighbors.distances import Distances
    >>> nearest_to(Distances(torch.tensor([[0.0], [1.0], [3.0]])), torch.tensor([[2.5]]), 2).indices.tolist()
    [[2, 1]]
    """
    queries = Queries(points if distances.unit == 1 else points.double() / distances.unit, exclude)
    if tree_is_quicker(distances, k):
        return _by_tree(distances, queries, k)
    found = KNearest(distances, k, queries)
    for columns in distances.tiles():
        block = _mask_excluded_(distances.from_points(queries.points, columns), exclude, columns)
        found.update(slice(None), columns, block)
    return found.nearest()


def tree_is_quicker(distances: PairDistances, k: int) -> bool:
    """Whether a k-d tree is faster than comparing every pair."""
    small = distances.has_tree and distances.dim <= TREE_UP_TO
    return distances.device.type == "cpu" and small and k + SPARE < distances.n - 1


class KNearest:
    """The nearest rows of every row, or of any points, accumulated over blocks of distances in any order.

    Parameters
    ----------
    distances : PairDistances
    k : int
    queries : Queries, optional
        Default: all rows.
    """

    def __init__(self, distances: PairDistances, k: int, queries: Queries | None = None) -> None:
        self._distances, self._k = distances, k
        self._queries = _all_rows(distances) if queries is None else queries
        self._dtype = distances.dtype if queries is None else torch.double
        others = distances.n - (self._queries.exclude is not None)
        wanted = k + (SPARE_TF32 if distances.is_tf32 and queries is None else SPARE)
        self._all_fit = others <= wanted
        shape = (len(self._queries.points), min(others, wanted))
        self._squared = torch.full(shape, torch.inf, dtype=self._dtype, device=distances.device)
        self._indices = torch.zeros(shape, dtype=torch.long, device=distances.device)

    def thresholds(self, rows: slice) -> Tensor:
        """The largest squared distance kept for each of these rows; only smaller ones are still of interest."""
        return self._squared[rows].amax(1)

    def update(self, rows: slice, columns: slice, block: Tensor) -> None:
        """Add a block of squared distances from ``rows`` to ``columns``."""
        squared, at = _select_below(block, self.thresholds(rows), self._indices.shape[1])
        self.merge(rows, squared, at + columns.start)

    def merge(self, rows: slice, squared: Tensor, indices: Tensor) -> None:
        """Keep the nearest of the present candidates and of these (rows, c)."""
        squared = torch.cat([self._squared[rows], squared], dim=1)
        indices = torch.cat([self._indices[rows], indices], dim=1)
        self._squared[rows], at = squared.topk(self._indices.shape[1], largest=False, sorted=False)
        self._indices[rows] = indices.gather(1, at)

    def nearest(self) -> Nearest:
        """The k nearest, verified, once all blocks were added."""
        beyond = self._squared.amax(1).double().clamp_min(0)
        if self._all_fit:
            beyond.fill_(torch.inf)
        else:
            beyond -= self._distances.margin(_radius(self._distances, self._queries), beyond, self._dtype)
        return _verify(self._distances, self._queries, Candidates(self._indices, beyond), self._k)


def _select_below(block: Tensor, thresholds: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The values of each row below its threshold, and their columns; the ``width`` smallest while a threshold is infinite."""
    if bool(thresholds.isinf().any()):
        return block.topk(min(width, block.shape[1]), largest=False, sorted=False)
    # Few values are below, and finding them is faster than selecting the smallest.
    rows, columns = (block < thresholds[:, None]).nonzero(as_tuple=True)
    counts = rows.bincount(minlength=len(block))
    slots = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    shape = (len(block), int(counts.max()))
    values, found = block.new_full(shape, torch.inf), rows.new_zeros(shape)
    values[rows, slots], found[rows, slots] = block[rows, columns], columns
    return values, found


def _kernels_apply(distances: PairDistances) -> bool:
    return triton_applies(distances.rows) and distances.dtype == torch.float32


class CandidateBuffer:
    """Candidates selected by a GPU kernel, which wait here until many of them are merged at once.

    Parameters
    ----------
    distances : PairDistances
    found : KNearest
        Receives the candidates.
    """

    def __init__(self, distances: PairDistances, found: KNearest) -> None:
        from dre.neighbors.triton.select_below import SelectionBuffer

        self._found = found
        self._pending = SelectionBuffer.empty(distances.n, CAPACITY, distances.device)
        self._thresholds = torch.full((distances.n,), torch.inf, device=distances.device)
        self._started: set[int] = set()  # first rows of the tiles that have thresholds
        self._tiles = distances.tiles()

    def update(self, rows: slice, columns: slice, block: Tensor) -> None:
        """Add a block of squared distances and its transpose."""
        sides = [(rows, columns, block)] + ([(columns, rows, block.T)] if rows != columns else [])
        new = [side for side in sides if side[0].start not in self._started]
        started = [(own, others) for own, others, _ in sides if own.start in self._started]
        if started and not self._select(rows, columns, block, started):
            new = sides
        for own, others, side_block in new:
            self._merge_pending(own)
            self._found.update(own, others, side_block)
            self._set_thresholds(own)

    def flush(self) -> None:
        """Merge all waiting candidates."""
        for tile in self._tiles:
            self._merge_pending(tile)

    def _select(self, rows: slice, columns: slice, block: Tensor, sides: list[tuple[slice, slice]]) -> bool:
        """Append the values below the thresholds; where they exceed the capacity, undo it and return False."""
        from dre.neighbors.triton.select_below import ThresholdSelection, select_below

        counts = [self._pending.counts[own] for own, _ in sides]
        before = [count.clone() for count in counts]
        selections = {
            own.start: ThresholdSelection(self._thresholds[own], self._pending.rows(own), others.start) for own, others in sides
        }
        select_below(block, selections.get(rows.start), selections.get(columns.start) if rows != columns else None)
        most = torch.stack([count.max() for count in counts]).tolist()
        if max(most) > CAPACITY:
            for count, old in zip(counts, before, strict=True):
                count.copy_(old)
            return False
        for (own, _), waiting in zip(sides, most, strict=True):
            if waiting > FULL:
                self._merge_pending(own)
                self._set_thresholds(own)
        return True

    def _merge_pending(self, rows: slice) -> None:
        values, ids, counts = self._pending.rows(rows)
        most = int(counts.max())
        if most:
            empty = torch.arange(most, device=counts.device) >= counts[:, None]
            self._found.merge(rows, values[:, :most].masked_fill(empty, torch.inf), ids[:, :most].long())
            counts.zero_()

    def _set_thresholds(self, rows: slice) -> None:
        self._thresholds[rows] = self._found.thresholds(rows)
        self._started.add(rows.start)


def sort_candidates(squared: Tensor, indices: Tensor, k: int) -> Nearest:
    """The first k of (m, c) candidates in each row, by (distance, index)."""
    squared, at = squared.sort(dim=1)
    indices = indices.gather(1, at)
    is_farther = squared[:, 1:] > squared[:, :-1] * (1 + TIE)
    group = torch.nn.functional.pad(is_farther.cumsum(1), (1, 0))  # candidates at equal distances form a group
    at = (group * (indices.max() + 1) + indices).argsort(dim=1)[:, :k]
    return Nearest(indices.gather(1, at), squared.gather(1, at))


def _verify(distances: PairDistances, queries: Queries, candidates: Candidates, k: int) -> Nearest:
    """The k nearest of the candidates, or of all rows where another row might be as near."""
    squared = distances.direct(queries.points, candidates.indices)
    indices, squared = sort_candidates(squared, candidates.indices, k)
    doubtful = squared[:, -1] * (1 + TIE) >= candidates.beyond
    if bool(doubtful.any()):
        indices[doubtful], squared[doubtful] = _among_all_rows(distances, queries.select(doubtful), k)
    return Nearest(indices, squared)


def _among_all_rows(distances: PairDistances, queries: Queries, k: int) -> Nearest:
    """Compare with all rows in float64; every row within the rounding error is a candidate, however many tie."""
    parts = []
    step = max(1, piece(WHOLE.get(distances.device.type, WHOLE["cpu"])) // distances.n)
    for which in torch.arange(len(queries.points), device=distances.device).split(step):
        points, exclude = queries.select(which)
        squared = _mask_excluded_(distances.from_points(points), exclude, slice(0, distances.n))
        farthest = squared.topk(k, largest=False, sorted=False).values.amax(1).clamp_min(0)
        limit = farthest * (1 + TIE) + 2 * distances.margin(distances.radius(points), farthest, torch.double)
        width = int((squared <= limit[:, None]).sum(1).max())
        near = squared.topk(width, largest=False, sorted=False)
        exact = distances.direct(points, near.indices).masked_fill_(near.values > limit[:, None], torch.inf)
        parts.append(sort_candidates(exact, near.indices, k))
    return Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _by_tree(distances: PairDistances, queries: Queries, k: int) -> Nearest:
    from scipy.spatial import cKDTree

    tree = cKDTree(distances.rows.double().numpy())
    found, ids = tree.query(queries.points.double().numpy(), k=k + SPARE, workers=thread_count())
    squared, indices = torch.from_numpy(found).square(), torch.from_numpy(ids)
    if queries.exclude is not None:  # the row itself is missing only if all results are duplicates of it: verified later
        others_first = (indices != queries.exclude[:, None]).double().argsort(dim=1, descending=True, stable=True)
        indices = indices.gather(1, others_first[:, :-1])
    return _verify(distances, queries, Candidates(indices, squared[:, -1] * (1 - TIE)), k)


def _all_rows(distances: PairDistances) -> Queries:
    return Queries(distances.rows, torch.arange(distances.n, device=distances.device))


def _radius(distances: PairDistances, queries: Queries) -> Tensor:
    return distances.norms.sqrt() if queries.points is distances.rows else distances.radius(queries.points)


def _mask_excluded_(squared: Tensor, exclude: Tensor | None, columns: slice) -> Tensor:
    """Set the distances from points to the rows that they are to infinity, in place."""
    if exclude is not None:
        inside = ((exclude >= columns.start) & (exclude < columns.stop)).nonzero().ravel()
        squared[inside, exclude[inside] - columns.start] = torch.inf
    return squared
