"""Normalized stress: how much distances in the embedding differ from those between the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, check_choice, paired_spaces
from dre.metrics.pairwise_pass import (
    PAPER,
    PROTOCOLS,
    Accumulator,
    DistanceRange,
    EvalConfig,
    Limits,
    Metric,
    PairBlock,
    PairwiseStatistics,
    Precision,
    Score,
    Statistic,
)


def normalized_stress(
    X: Any,
    Y: Any,
    *,
    protocol: str = "standard",
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    device: Device = "auto",
) -> float:
    """Compute the difference between the distances in X and in Y, relative to those in X; 0 when all are kept.

    σ = sqrt(Σ (Dᵢⱼ - dᵢⱼ)² / Σ Dᵢⱼ²) over all pairs, with D the distances in X and d those in Y. It depends on the scale of
    the embedding, which most methods leave open.

    Sums are in float64. Products are in float64 up to 5,000 rows and for float64 data, else in float32 where precise enough.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    protocol : {"standard", "paper"}, default="standard"
        ``"paper"`` first scales D and d each from its smallest and largest value to [0, 1]. The paper's Table 1 reports one
        minus that.
    metric : str or callable, default="euclidean"
        Metric between rows of X. D are the distances of the transformed rows, see ``dre.data.metric``.
    metric_kwds : dict, default=None
        Keywords of the metric.
    device : str or torch.device, default="auto"

    Returns
    -------
    float
        NaN where all rows of X are equal.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> normalized_stress(X, X), round(normalized_stress(X, 2 * X), 12)
    (0.0, 1.0)
    >>> normalized_stress(X, 2 * X, protocol="paper") < 1e-9
    True
    """
    check_choice("protocol", protocol, PROTOCOLS)
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "stress")
    return NORMALIZED_STRESS.value(EvalConfig(pairwise.n, protocol=protocol), pairwise)


@dataclass(frozen=True)
class StressRatio:
    """The normalized stress under a protocol."""

    protocol: str
    precision: ClassVar[Precision] = Precision.VALUES

    @property
    def requires(self) -> tuple[Statistic, ...]:
        return (DistanceRange(HIGH), DistanceRange(LOW)) if self.protocol == PAPER else ()

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        if self.protocol == PAPER:
            high, low = pairwise.compute(*self.requires)
            return _StressRatio(high, low)
        unit = pairwise.distances(HIGH).unit / pairwise.distances(LOW).unit
        return _StressRatio(Limits(0.0, 1.0), Limits(0.0, unit))


class _StressRatio:
    def __init__(self, high: Limits, low: Limits) -> None:
        self._high, self._low = high, low
        self._difference, self._total = 0.0, 0.0

    def add(self, block: PairBlock) -> None:
        high = self._high.rescale(block.unique_pairs(block.squared(HIGH)))
        low = self._low.rescale(block.unique_pairs(block.squared(LOW)))
        self._total += float(high.square().sum())
        self._difference += float((high - low).square_().sum())

    def result(self) -> float:
        return (self._difference / self._total) ** 0.5 if self._total else float("nan")


def _score(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    scale = "distances scaled to 0…1" if config.protocol == PAPER else "depends on the map's scale"
    return Score(pairwise.compute(StressRatio(config.protocol))[0], remark=f"{scale}; lower is better")


NORMALIZED_STRESS = Metric("normalized_stress", lambda config: (StressRatio(config.protocol),), _score)
