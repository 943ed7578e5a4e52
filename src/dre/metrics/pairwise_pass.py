"""Pairwise statistics shared by several metrics, computed in as few passes over all pairs of rows as possible.

A metric names the statistics that it needs and reads its score off their results. ``PairwiseStatistics.compute`` visits
all pairs of rows in blocks of distances and shows every block to all statistics of a pass. A statistic that requires the
result of another one runs in a later pass. No matrix of n × n distances is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from operator import methodcaller
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dre.metrics.inputs import LOW, Space
from dre.neighbors.distances import Distances, PairDistances
from dre.progress.display import progress_bar
from dre.runtime import full_float32
from dre.runtime.gpu_memory import in_smaller_pieces
from dre.runtime.threads import map_in_threads, one_thread_on

Array = np.ndarray[Any, Any]
STANDARD, PAPER = PROTOCOLS = ("standard", "paper")  # the usual definitions, and those behind the paper's Table 1
FLOAT64_UP_TO = 5_000  # rows: float64 products of so few take less than a second


class Precision(IntEnum):
    """Precision that a statistic needs of the products from which distances are computed."""

    ORDER = 0  # only the order of distances: float32 suffices, as close calls are settled directly
    VALUES = 1  # the distances, as precise as the data
    FLOAT64 = 2


class PairBlock:
    """Squared distances between two slices of rows, computed per space when first read.

    Parameters
    ----------
    rows, columns : slice
        The rows of either side.
    spaces : mapping of str to PairDistances
    """

    def __init__(self, rows: slice, columns: slice, spaces: Mapping[str, PairDistances]) -> None:
        self.rows, self.columns, self._spaces = rows, columns, spaces
        self._squared: dict[str, Tensor] = {}

    def squared(self, space: str) -> Tensor:
        """Return (rows, columns), not to be written to; the distance from a row to itself is infinite."""
        if space not in self._squared:
            self._squared[space] = self._spaces[space].block(self.rows, self.columns)
        return self._squared[space]

    @property
    def spaces(self) -> list[str]:
        """The spaces whose distances were read."""
        return list(self._squared)

    def unique_pairs(self, values: Tensor) -> Tensor:
        """Flatten the values of a block such that every pair of rows appears once."""
        if self.rows != self.columns:
            return values.reshape(-1)
        return values[torch.ones_like(values, dtype=torch.bool).triu_(1)]


class Accumulator(Protocol):
    """Running computation of a statistic; it sees every block once."""

    def add(self, block: PairBlock) -> None: ...

    def result(self) -> Any: ...


class Statistic(Protocol):
    """Description of a pairwise statistic; hashable, so that equal statistics are computed once."""

    @property
    def requires(self) -> tuple[Statistic, ...]: ...

    @property
    def precision(self) -> Precision: ...

    def start(self, pairwise: PairwiseStatistics) -> Accumulator: ...


class PairwiseStatistics:
    """Compute statistics over all pairs of rows, and keep their results.

    Parameters
    ----------
    spaces : dict of str to Tensor of shape (n, d), or to MetricDistances
        Points per space: ``LOW`` is the embedding, ``HIGH`` the rows, or the distances between them.
    title : str, default="metrics"
        Title of the progress bar.
    """

    def __init__(self, spaces: Mapping[str, Any], title: str = "metrics") -> None:
        self.spaces: Mapping[str, Any] = spaces
        self._title = title
        self._precision = Precision.ORDER
        self._distances: dict[str, PairDistances] = {}
        self._results: dict[Statistic, Any] = {}

    @property
    def n(self) -> int:
        return len(self.spaces[LOW])

    @property
    def device(self) -> torch.device:
        points: Tensor = self.spaces[LOW]
        return points.device

    def distances(self, space: str) -> PairDistances:
        """Return the distances of a space in the precision that the current pass needs."""
        if space not in self._distances:
            rows: Space = self.spaces[space]
            if not isinstance(rows, Tensor):
                return rows
            precise = rows.dtype == torch.double or self.n <= FLOAT64_UP_TO
            in_float64 = self._precision == Precision.FLOAT64 or (self._precision == Precision.VALUES and precise)
            self._distances[space] = Distances(rows, torch.double if in_float64 else None)
        return self._distances[space]

    def compute(self, *statistics: Statistic) -> list[Any]:
        """Return the result of each statistic; those not yet known share their passes."""
        passes = self._passes(statistics)
        if passes:
            self._run(passes)
        return [self._results[statistic] for statistic in statistics]

    @in_smaller_pieces("metrics")
    def _run(self, passes: list[list[Statistic]]) -> None:
        needed = max(statistic.precision for ready in passes for statistic in ready)
        if needed > self._precision:
            self._precision = needed
            self._distances.clear()
        distances = {space: self.distances(space) for space in self.spaces}
        blocks = list(distances[LOW].upper_blocks())
        # Full precision is a setting of the process: threads that set and reset it would get into each other's way.
        whole = full_float32() if self.device.type == "cpu" else nullcontext()
        with progress_bar(self._title, len(passes) * len(blocks)) as update, one_thread_on(self.device), whole:
            for ready in passes:
                running = {statistic: statistic.start(self) for statistic in ready}
                for block in self._computed(blocks, distances):
                    list(self._map(methodcaller("add", block), running.values()))
                    update()
                self._results |= {statistic: accumulator.result() for statistic, accumulator in running.items()}

    def _computed(self, blocks: list[tuple[slice, slice]], distances: Mapping[str, PairDistances]) -> Iterator[PairBlock]:
        """Yield the blocks in their order. Threads of a CPU compute the next ones, in the spaces that the first was read in."""
        first = PairBlock(*blocks[0], distances)
        yield first

        def compute(block: tuple[slice, slice]) -> PairBlock:
            pairs = PairBlock(*block, distances)
            for space in first.spaces:
                pairs.squared(space)
            return pairs

        yield from self._map(compute, blocks[1:])

    def _map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map_in_threads(work, items) if self.device.type == "cpu" else map(work, items)

    def _passes(self, statistics: Sequence[Statistic]) -> list[list[Statistic]]:
        """Group the unknown statistics and their requirements, each after what it requires."""
        missing = {statistic: None for statistic in statistics if statistic not in self._results}
        for statistic in list(missing):
            for required in self._passes(statistic.requires):
                missing |= dict.fromkeys(required)
        passes: list[list[Statistic]] = []
        known = set(self._results)
        while missing:
            ready = [statistic for statistic in missing if known.issuperset(statistic.requires)]
            passes.append(ready)
            known |= set(ready)
            missing = {statistic: None for statistic in missing if statistic not in known}
        return passes


class Limits(NamedTuple):
    """Smallest and largest distance between two rows."""

    smallest: float
    largest: float

    def rescale(self, squared: Tensor) -> Tensor:
        """Return distances from squared ones in float64, scaled from these limits to [0, 1]."""
        distances = squared.clamp_min(0).double().sqrt_()
        return distances.sub_(self.smallest).div_(self.largest - self.smallest if self.largest > self.smallest else 1.0)


@dataclass(frozen=True)
class DistanceRange:
    """Limits of all distances in a space, in the unit of its ``Distances``."""

    space: str
    requires: ClassVar[tuple[Statistic, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        return _DistanceRange(pairwise, self.space)


class _DistanceRange:
    def __init__(self, pairwise: PairwiseStatistics, space: str) -> None:
        self._distances, self._space = pairwise.distances(space), space
        self._reach = self._distances.norms.max().sqrt().reshape(1)
        self._smallest, self._largest = torch.inf, 0.0

    def add(self, block: PairBlock) -> None:
        squared = block.squared(self._space)
        values = block.unique_pairs(squared)
        if not values.numel():  # a block of a single row
            return
        self._largest = max(self._largest, float(values.max()))
        smallest = values.min().double().clamp_min(0).reshape(1)
        margin = self._distances.margin(self._reach, smallest)
        if self._smallest > 0 and float(smallest - margin) < self._smallest:
            # Rounding: the smallest product need not belong to the smallest distance, and is never 0 for equal rows.
            rows, columns = (squared <= smallest + 2 * margin).nonzero(as_tuple=True)
            direct = self._distances.direct_pairs(block.rows.start + rows, block.columns.start + columns)
            self._smallest = min(self._smallest, float(direct.min()))

    def result(self) -> Limits:
        return Limits(self._smallest**0.5, self._largest**0.5)


class Reference(NamedTuple):
    """Labeled points of the same embedding among which neighbors are sought, such as the training rows."""

    points: Tensor  # (m, d)
    labels: Tensor  # (m,)
    query_labels: Tensor  # (n,) of the evaluated rows, in the same encoding


@dataclass(frozen=True)
class EvalConfig:
    """Settings of an evaluation of n rows.

    Parameters
    ----------
    n : int
        Number of rows.
    k : int, default=1
        Number of neighbors.
    protocol : {"standard", "paper"}, default="standard"
    shepard : {"auto", "exact", "histogram"}, default="auto"
        Method of the Shepard goodness.
    levels : dict of str to Tensor of shape (n,), default=empty dict
        Encoded labels by the name of their level.
    reference : Reference, default=None
    """

    n: int
    k: int = 1
    protocol: str = STANDARD
    shepard: str = "auto"
    levels: dict[str, Tensor] = field(default_factory=dict)
    reference: Reference | None = None

    @property
    def labels(self) -> Tensor:
        """Labels of the first level."""
        return next(iter(self.levels.values()))

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1 if self.levels else 0


class Score(NamedTuple):
    """Value of a metric; ``per_point`` holds the n values of which it is the mean, where it is one."""

    value: Any  # a number, or a dict by level
    per_point: Tensor | None = None
    remark: str = ""


@dataclass(frozen=True)
class Metric:
    """A quality metric: the statistics it needs, and how its score follows from them.

    Parameters
    ----------
    name : str
        Name of its public function.
    statistics : callable
        Maps an EvalConfig to the statistics that ``score`` reads.
    score : callable
    applies : callable, default=lambda config: True
        Tells whether the metric is defined for an EvalConfig.
    """

    name: str
    statistics: Callable[[EvalConfig], tuple[Statistic, ...]]
    score: Callable[[EvalConfig, PairwiseStatistics], Score]
    applies: Callable[[EvalConfig], bool] = lambda config: True

    def value(self, config: EvalConfig, pairwise: PairwiseStatistics) -> float:
        """Return the score."""
        return float(self._score(config, pairwise).value)

    def per_point(self, config: EvalConfig, pairwise: PairwiseStatistics) -> Array:
        """Return the score of every point."""
        values = self._score(config, pairwise).per_point
        if values is None:
            raise TypeError(f"{self.name} is not a mean over points; per_point is not available")
        return np.asarray(values.cpu().numpy())

    def _score(self, config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
        pairwise.compute(*self.statistics(config))
        return self.score(config, pairwise)
