"""The rank correlation of all distances by a histogram of them: nothing is held, and what the bins may change is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW
from dre.metrics.study import Gathering, Part, Precision, Study

BITS, OCTAVES = 14, 48  # a bin is 1/16384 of a squared distance wide; those below 2⁻⁴⁸ of the largest share one
BASE = (127 - OCTAVES) << BITS  # the leading bits of 2⁻⁴⁸ as float32
BINS = (OCTAVES << BITS) + 1


@dataclass(frozen=True)
class Counts:
    """How many pairs have a distance in each bin."""

    space: str
    needs: ClassVar[tuple[Part, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        return _Counts(study, self.space)


@dataclass(frozen=True)
class Binned:
    """The correlation of ranks that are shared inside a bin, and a bound on its error."""

    needs: ClassVar[tuple[Part, ...]] = (Counts(HIGH), Counts(LOW))
    precision: ClassVar[Precision] = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        return _Binned(study, *study.find(*self.needs))


class _Bins:
    """Which bin a squared distance falls in: the leading bits of its floating-point number."""

    def __init__(self, study: Study, space: str) -> None:
        self._space = space
        largest = 4 * float(study.distances(space).norms.max())  # |a - b|² <= (2 max|a|)²
        self._scale = 1 / largest if largest > 0 else 1.0

    def __call__(self, block: Block) -> Tensor:
        squared = (block.once(block.squared(self._space)) * self._scale).float().clamp_(0, 1)
        return (squared.view(torch.int32) >> (23 - BITS)).sub_(BASE).clamp_(0, BINS - 1)


class _Counts:
    def __init__(self, study: Study, space: str) -> None:
        self._bins = _Bins(study, space)
        self._counts = torch.zeros(BINS, dtype=torch.long, device=study.device)

    def take(self, block: Block) -> None:
        self._counts += self._bins(block).bincount(minlength=BINS)

    def result(self) -> Tensor:
        return self._counts


class _Binned:
    def __init__(self, study: Study, high: Tensor, low: Tensor) -> None:
        self._bins = [_Bins(study, space) for space in (HIGH, LOW)]
        self._counts = [high.double(), low.double()]
        pairs = float(self._counts[0].sum())
        self._ranks = [counts.cumsum(0) - (counts - 1) / 2 - (pairs + 1) / 2 for counts in self._counts]  # about their mean
        self._product = 0.0

    def take(self, block: Block) -> None:
        high, low = (ranks.index_select(0, bins(block)) for ranks, bins in zip(self._ranks, self._bins, strict=True))
        self._product += float(high @ low)

    def result(self) -> tuple[float, float]:
        both = list(zip(self._counts, self._ranks, strict=True))
        lengths = [float((counts * ranks.square()).sum()) ** 0.5 for counts, ranks in both]
        if not all(lengths):
            return float("nan"), float("nan")
        # Ranks are those of the bins plus a rest that sums to 0 in every bin, and whose square is at most Σ (c³ - c)/12. With
        # its length α and β, in parts of the ranks' own, Cauchy and Schwarz leave no more than this for the products with it.
        alpha, beta = (
            float(((counts**3 - counts).sum() / 12) ** 0.5) / length
            for counts, length in zip(self._counts, lengths, strict=True)
        )
        error = alpha + beta + alpha * beta + alpha**2 + beta**2
        return self._product / (lengths[0] * lengths[1]), min(2.0, error)
