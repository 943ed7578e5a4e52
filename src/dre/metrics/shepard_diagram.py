"""Shepard diagram: a 2-D histogram of all pairs by their distance in X and in the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, paired_spaces
from dre.metrics.pairwise_pass import Accumulator, DistanceRange, Limits, PairBlock, PairwiseStatistics, Precision, Statistic

Array = np.ndarray[Any, Any]


class ShepardDiagram(NamedTuple):
    """Counts of pairs by distance in X (first axis) and in Y (second axis), with the edges of the bins."""

    counts: Array  # (bins, bins)
    high_edges: Array  # (bins + 1,)
    low_edges: Array


def shepard_diagram(
    X: Any,
    Y: Any,
    *,
    bins: int = 100,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    device: Device = "auto",
) -> ShepardDiagram:
    """Count all pairs of rows by their distance in X and in the embedding Y; ``dre.plot.shepard`` draws the result.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    bins : int, default=100
        Number of bins per axis, from the smallest to the largest distance.
    metric : str or callable, default="euclidean"
        Metric between rows of X. Distances are those of the transformed rows, see ``dre.data.metric``.
    metric_kwds : dict, default=None
        Keywords of the metric.
    device : str or torch.device, default="auto"

    Returns
    -------
    ShepardDiagram

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> int(shepard_diagram(X, X[:, :2], bins=10).counts.sum()) == 100 * 99 // 2
    True
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise ValueError(f"bins={bins!r}; expected an integer of at least 2")
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "Shepard diagram")
    (counts,) = pairwise.compute(JointHistogram(int(bins)))
    return ShepardDiagram(counts.cpu().numpy(), *(_edges(pairwise, space, int(bins)) for space in (HIGH, LOW)))


def _edges(pairwise: PairwiseStatistics, space: str, bins: int) -> Array:
    smallest, largest = pairwise.compute(DistanceRange(space))[0]
    return pairwise.distances(space).unit * np.linspace(smallest, largest, bins + 1)


@dataclass(frozen=True)
class JointHistogram:
    """Number of pairs (bins, bins) by both distances, each binned from its smallest to its largest value."""

    bins: int
    requires: ClassVar[tuple[Statistic, ...]] = (DistanceRange(HIGH), DistanceRange(LOW))
    precision: ClassVar[Precision] = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        high, low = pairwise.compute(*self.requires)
        return _JointHistogram(self.bins, {HIGH: high, LOW: low}, pairwise.device)


class _JointHistogram:
    def __init__(self, bins: int, limits: dict[str, Limits], device: torch.device) -> None:
        self._bins, self._limits = bins, limits
        self._counts = torch.zeros(bins * bins, dtype=torch.long, device=device)

    def add(self, block: PairBlock) -> None:
        high, low = (self._bin(block, space) for space in (HIGH, LOW))
        self._counts += (high * self._bins + low).bincount(minlength=len(self._counts))

    def _bin(self, block: PairBlock, space: str) -> Tensor:
        share = self._limits[space].rescale(block.unique_pairs(block.squared(space)))
        return share.mul_(self._bins).long().clamp_(0, self._bins - 1)

    def result(self) -> Tensor:
        return self._counts.view(self._bins, self._bins)
