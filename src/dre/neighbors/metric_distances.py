"""Squared distances of any metric, or of a given matrix, between rows: as ``Distances`` has them for the Euclidean metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import RowMetric
from dre.data.subsample import evenly_spaced_ids
from dre.neighbors.distances import equal_slices, rounds_of
from dre.progress.activity import activity
from dre.runtime import available_bytes
from dre.runtime.threads import map_in_threads

Array = np.ndarray[Any, Any]
Ids = slice | Array  # of rows
Between = Callable[[Ids, Ids], Array]
BLOCK = 1024  # rows on a side of a block
BLOCK_OF_CALLS = 128  # where each distance is a call of Python
SOME = 4  # rows whose distances to all others tell their size
CHUNK = 512  # rows that a thread compares with rows of their own
CHECKED = 16  # pairs of rows on which a function is called both ways
ROUGHLY = 1e-3  # part of the largest distance by which a function may miss its laws: the arccos of a float32 rounds by a third


class MetricDistances:
    """Squared distances under a metric that has no transform of the rows, on the CPU, with the members of ``Distances``.

    Each is computed from its two rows alone, with the same bits in whatever block, so that no margin is needed. The points of
    searches are the row numbers, (n, 1), since rows may be sparse, or absent behind a matrix of distances.

    Parameters
    ----------
    shape : (n, d)
        Of the rows.
    between : callable
        From two sets of row ids to the distances between them.
    name : str
        Of the metric, in errors.
    block : int
        Rows on a side of a block.

    Examples
    --------
    >>> from dre.data.metric import row_metric
    >>> distances = MetricDistances.of(np.array([[0.0, 0.0], [3.0, 4.0]]), row_metric("manhattan"))
    >>> distances.direct_pairs(torch.tensor([0]), torch.tensor([1]))
    tensor([49.], dtype=torch.float64)
    """

    def __init__(self, shape: tuple[int, int], between: Between, name: str, block: int = BLOCK) -> None:
        self.n, self.dim = self.shape = shape
        self.device, self.dtype, self.unit = torch.device("cpu"), torch.double, 1.0
        self.rows = torch.arange(self.n)[:, None]
        self.has_tree = self.is_tf32 = False
        self._between, self._name, self._block = between, name, block

    @classmethod
    def of(cls, rows: Any, metric: RowMetric) -> MetricDistances:
        """Return the distances between rows (n, ...), or those in a matrix (n, n) if the metric is "precomputed"."""
        if metric.is_precomputed:
            return cls((len(rows), rows.shape[1]), lambda a, b: np.asarray(rows[a][:, b], np.float64), "precomputed")
        X = metric.prepare(rows)
        block = BLOCK if metric.function is None else BLOCK_OF_CALLS
        found = cls(tuple(X.shape), lambda a, b: metric.between(X[a], X[b]), str(metric), block)
        if metric.function is not None:
            found._check_function()
        return found

    def _check_function(self) -> None:
        """Raise a ValueError if the metric differs between the two directions of a pair, or from 0 for a row and itself."""
        pairs = np.random.default_rng(0).integers(self.n, size=(CHECKED, 2))
        both = [self.values(pair, pair) for pair in pairs]
        largest = max(float(found.max()) for found in both)
        for (i, j), found in zip(pairs, both, strict=True):
            if found[0, 0] > ROUGHLY * largest:
                raise ValueError(
                    f"the {self._name} distance of row {i} to itself is {found[0, 0]:g}: it must be 0. "
                    "Return a distance, which grows as rows differ, not a similarity."
                )
            if abs(found[0, 1] - found[1, 0]) > ROUGHLY * largest:
                raise ValueError(
                    f"the {self._name} distance is {found[0, 1]:g} from row {i} to row {j} and {found[1, 0]:g} back: both must "
                    "be equal. Return the mean of the two directions, (f(x, y) + f(y, x)) / 2."
                )

    @cached_property
    def norms(self) -> Tensor:
        """The size of squared distances, for all rows alike: a quarter of what none exceeds, by the triangle inequality."""
        some = evenly_spaced_ids(self.n, SOME)
        largest = max(float(self.values(some, part).max()) for part in self.tiles())
        return torch.full((self.n,), largest**2, dtype=torch.double)

    def held(self) -> MetricDistances:
        """Return the same distances from a matrix that is computed now: for a metric whose calls cost more than memory."""
        needed, free = 8 * self.n**2, available_bytes()
        if free is not None and needed > free / 2:
            raise ValueError(
                f"the distances of {self.n:,} rows need {needed / 2**30:.1f} GiB, more than half of the {free / 2**30:.1f} GiB "
                "available: pass fewer rows"
            )
        matrix = np.empty((self.n, self.n))
        blocks = list(self.upper_blocks())
        with activity(f"computing {self._name} distances", len(blocks)) as computing:
            for rows, columns in blocks:
                matrix[rows, columns] = found = self.values(rows, columns)
                matrix[columns, rows] = found.T
                computing.advance()
        return MetricDistances((self.n, self.dim), lambda a, b: matrix[a][:, b], self._name)

    def values(self, rows: Ids, columns: Ids) -> Array:
        """Return the distances between two sets of rows, float64."""
        found = self._between(rows, columns)
        wrong = ~(found >= 0) | np.isinf(found)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            a, b = (int(np.arange(self.n)[ids][at]) for ids, at in ((rows, i), (columns, j)))
            raise ValueError(
                f"the {self._name} distance of the rows {a} and {b} is {found[i, j]}: distances must be finite and not negative"
            )
        return found

    def tiles(self) -> list[slice]:
        return equal_slices(self.n, self._block)

    def upper_blocks(self) -> Iterator[tuple[slice, slice]]:
        return combinations_with_replacement(self.tiles(), 2)

    def rounds(self) -> list[list[tuple[slice, slice]]]:
        return rounds_of(self.tiles())

    def block(self, rows: slice, columns: slice) -> Tensor:
        squared = torch.from_numpy(np.square(self.values(rows, columns)))  # a new array: a given matrix may be read-only
        if rows == columns:
            squared.fill_diagonal_(torch.inf)
        return squared

    def from_points(self, points: Tensor, columns: slice | None = None) -> Tensor:
        ids = points[:, 0].numpy()
        parts = [self.values(ids, part) for part in (self.tiles() if columns is None else [columns])]
        return torch.from_numpy(np.concatenate(parts, axis=1)).square_()

    def radius(self, points: Tensor) -> Tensor:
        return torch.zeros(len(points), dtype=torch.double)

    def margin(self, radius: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return torch.zeros_like(squared)

    def direct(self, points: Tensor, ids: Tensor) -> Tensor:
        heads, tails = points[:, 0].numpy(), ids.numpy()

        def compare(part: slice) -> Array:
            return np.concatenate([self.values(heads[i : i + 1], tails[i]) for i in range(part.start, part.stop)])

        parts = [slice(start, min(len(heads), start + CHUNK)) for start in range(0, len(heads), CHUNK)]
        return torch.from_numpy(np.concatenate([np.empty((0, ids.shape[1])), *map_in_threads(compare, parts)])).square_()

    def direct_pairs(self, heads: Tensor, tails: Tensor) -> Tensor:
        found = np.empty(len(heads))
        order = np.argsort(heads.numpy(), kind="stable")  # pairs of one row are compared at once
        own, starts = np.unique(heads.numpy()[order], return_index=True)
        stops = np.append(starts[1:], len(order))
        for row, start, stop in zip(own, starts, stops[: len(own)], strict=True):
            part = order[start:stop]
            found[part] = self.values(np.array([row]), tails.numpy()[part])[0]
        return torch.from_numpy(found).square_()
