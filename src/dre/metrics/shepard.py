"""Shepard goodness: the rank correlation of all distances, exact by sorting or bounded by a histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, check_choice, paired_spaces
from dre.metrics.pairwise_pass import (
    Accumulator,
    EvalConfig,
    Metric,
    PairBlock,
    PairwiseStatistics,
    Precision,
    Score,
    Statistic,
)
from dre.metrics.spearman import spearman
from dre.runtime import available_bytes

METHODS = ("auto", "exact", "histogram")
EXACT_UP_TO = 3_000  # rows: sorting 4.5 million pairs takes two seconds and a third of a GiB
BYTES_PER_PAIR = 72  # peak of the exact method
# A float64 product is off by more than the tolerance of ``spearman`` where a squared distance is below this part of the
# squared norms; differences are used there.
CLOSE = 1e-3
BITS, OCTAVES = 14, 48  # a bin spans 1/16384 of a squared distance; one bin holds all below 2⁻⁴⁸ of the largest
BASE = (127 - OCTAVES) << BITS  # the leading bits of 2⁻⁴⁸ as float32
BINS = (OCTAVES << BITS) + 1


class Goodness(NamedTuple):
    """Rank correlation, and a bound on its error."""

    value: float
    error: float


def shepard_goodness(
    X: Any,
    Y: Any,
    *,
    method: str = "auto",
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    return_error: bool = False,
    device: Device = "auto",
) -> float | tuple[float, float]:
    """Compute Spearman's rank correlation of all distances in X with those in the embedding Y.

    ρ = Σ (R - R̄)(r - r̄) / sqrt(Σ (R - R̄)² Σ (r - r̄)²) over all pairs i < j, where R is the rank of the pair's distance in
    X and r that in Y. Equal distances share their mean rank. It is 1 when the order of all distances is kept.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    method : {"auto", "exact", "histogram"}, default="auto"
        ``"exact"`` sorts all distances and holds them in memory. ``"histogram"`` holds none: distances in a bin, 1/32768 of
        themselves wide, share their mean rank. ``"auto"`` is exact up to 3,000 rows.
    metric : str or callable, default="euclidean"
        Metric between rows of X. Distances in Y are Euclidean.
    metric_kwds : dict, default=None
        Keywords of the metric.
    return_error : bool, default=False
        Also return a bound on the error that the bins cause, usually about 6e-5; 0 if exact. It excludes the rounding of
        float32 data beyond 5,000 rows, which may move a distance to the next bin.
    device : str or torch.device, default="auto"

    Returns
    -------
    float, or (float, float) with ``return_error=True``

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> round(shepard_goodness(X, X), 12)
    1.0
    """
    check_choice("method", method, METHODS)
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "Shepard goodness")
    (result,) = pairwise.compute(_statistic(EvalConfig(pairwise.n, shepard=method), pairwise.device.type))
    return result if return_error else float(result.value)


def _statistic(config: EvalConfig, device: str = "cpu") -> Statistic:
    n = config.n
    if config.shepard == "exact":
        needed, available = BYTES_PER_PAIR * n * (n - 1) // 2, available_bytes(device)
        if available is not None and needed > available:
            raise ValueError(
                f"sorting the distances of {n:,} rows takes about {needed / 2**30:.0f} GiB, but only "
                f"{available / 2**30:.0f} GiB are available; use method='histogram', which bounds its error"
            )
    exact = config.shepard == "exact" or (config.shepard == "auto" and n <= EXACT_UP_TO)
    return SortedSpearman() if exact else BinnedSpearman()


def _score(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    (result,) = pairwise.compute(_statistic(config, pairwise.device.type))
    return Score(result.value, remark=f"± {result.error:.1g}" if result.error else "")


SHEPARD_GOODNESS = Metric("shepard_goodness", lambda config: (_statistic(config),), _score)


@dataclass(frozen=True)
class SortedSpearman:
    """The exact rank correlation; the only statistic that holds all distances."""

    requires: ClassVar[tuple[Statistic, ...]] = ()
    precision: ClassVar[Precision] = Precision.FLOAT64

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        return _SortedSpearman(pairwise)


class _SortedSpearman:
    def __init__(self, pairwise: PairwiseStatistics) -> None:
        self._pairwise = pairwise
        self._parts: dict[str, list[Tensor]] = {HIGH: [], LOW: []}

    def add(self, block: PairBlock) -> None:
        for space, parts in self._parts.items():
            parts.append(block.unique_pairs(self._precise(block, space)))

    def _precise(self, block: PairBlock, space: str) -> Tensor:
        """Return squared distances with a small relative error, also between close and equal rows."""
        distances, squared = self._pairwise.distances(space), block.squared(space)
        norms = distances.norms[block.rows, None] + distances.norms[block.columns]
        rows, columns = (squared <= CLOSE * norms).nonzero(as_tuple=True)
        direct = distances.direct_pairs(block.rows.start + rows, block.columns.start + columns)
        return squared.index_put((rows, columns), direct)

    def result(self) -> Goodness:
        high, low = (torch.cat(self._parts.pop(space)) for space in (HIGH, LOW))
        return Goodness(spearman(high, low), 0.0)


@dataclass(frozen=True)
class BinCounts:
    """Number of pairs whose distance falls into each bin."""

    space: str
    requires: ClassVar[tuple[Statistic, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        return _BinCounts(pairwise, self.space)


class _BinCounts:
    def __init__(self, pairwise: PairwiseStatistics, space: str) -> None:
        self._binning = _Binning(pairwise, space)
        self._counts = torch.zeros(BINS, dtype=torch.long, device=pairwise.device)

    def add(self, block: PairBlock) -> None:
        self._counts += self._binning(block).bincount(minlength=BINS)

    def result(self) -> Tensor:
        return self._counts


class _Binning:
    """Bins of squared distances: the leading bits of their floating-point representation."""

    def __init__(self, pairwise: PairwiseStatistics, space: str) -> None:
        self._space = space
        largest = 4 * float(pairwise.distances(space).norms.max())  # |a - b|² <= (2 max|a|)²
        self._scale = 1 / largest if largest > 0 else 1.0

    def __call__(self, block: PairBlock) -> Tensor:
        squared = (block.unique_pairs(block.squared(self._space)) * self._scale).float().clamp_(0, 1)
        return (squared.view(torch.int32) >> (23 - BITS)).sub_(BASE).clamp_(0, BINS - 1)


@dataclass(frozen=True)
class BinnedSpearman:
    """The correlation of ranks that are shared inside a bin, and a bound on its error."""

    requires: ClassVar[tuple[Statistic, ...]] = (BinCounts(HIGH), BinCounts(LOW))
    precision: ClassVar[Precision] = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        return _BinnedSpearman(pairwise, *pairwise.compute(*self.requires))


class _BinnedSpearman:
    def __init__(self, pairwise: PairwiseStatistics, high: Tensor, low: Tensor) -> None:
        self._binnings = [_Binning(pairwise, space) for space in (HIGH, LOW)]
        self._counts = [high.double(), low.double()]
        pairs = float(self._counts[0].sum())
        self._ranks = [counts.cumsum(0) - (counts - 1) / 2 - (pairs + 1) / 2 for counts in self._counts]  # centered
        self._product = 0.0

    def add(self, block: PairBlock) -> None:
        high, low = (ranks.index_select(0, bins(block)) for ranks, bins in zip(self._ranks, self._binnings, strict=True))
        self._product += float(high @ low)

    def result(self) -> Goodness:
        both = list(zip(self._counts, self._ranks, strict=True))
        norms = [float((counts * ranks.square()).sum()) ** 0.5 for counts, ranks in both]
        if not all(norms):
            return Goodness(float("nan"), float("nan"))
        # The true ranks are those of the bins plus a rest that sums to 0 in every bin and whose squared norm is at most
        # Σ (c³ - c)/12. With α and β the norms of the rests relative to those of the ranks, Cauchy-Schwarz bounds the error.
        alpha, beta = (
            float(((counts**3 - counts).sum() / 12) ** 0.5) / norm for counts, norm in zip(self._counts, norms, strict=True)
        )
        error = alpha + beta + alpha * beta + alpha**2 + beta**2
        return Goodness(self._product / (norms[0] * norms[1]), min(2.0, error))
