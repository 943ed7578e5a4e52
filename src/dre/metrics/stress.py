"""Normalised stress: how much the distances in the map differ from those between the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dre.metrics.measure import Measure, Score
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, Device, one_of, two_spaces
from dre.metrics.protocol import PAPER, PROTOCOLS
from dre.metrics.study import Gathering, Part, Study


def normalized_stress(X: Any, Y: Any, *, protocol: str = "standard", device: Device = "auto") -> float:
    """The root of the squared differences of all distances, as a part of the distances: 0 when all are kept.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> normalized_stress(X, X), round(normalized_stress(X, 2 * X), 12), normalized_stress(X, 2 * X, protocol="paper") < 1e-9
    (0.0, 1.0, True)

    ``"standard"``: σ = sqrt(Σ (Dᵢⱼ - dᵢⱼ)² / Σ Dᵢⱼ²) over all pairs, D in X and d in Y. It depends on the
    scale of the map, which most methods leave open. ``"paper"``: the same of D and d after each has been scaled from its
    smallest and largest value to 0 and 1; the paper's Table 1 gives one minus that.

    The products are taken in float64 up to 5,000 rows and for data in float64, else in float32 where that is clear; the sums in
    float64.
    """
    one_of("protocol", protocol, PROTOCOLS)
    return NORMALIZED_STRESS(Study(two_spaces(X, Y, device), protocol=protocol, title="stress"))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Extent:
    """The smallest and the largest distance in a space, in units of its own."""

    space: str
    needs: tuple[Part, ...] = ()

    def begin(self, study: Study) -> Gathering:
        return _Extent(study, self.space)


@dataclass(frozen=True)
class Stress:
    protocol: str

    @property
    def needs(self) -> tuple[Part, ...]:
        return (Extent(HIGH), Extent(LOW)) if self.protocol == PAPER else ()

    def begin(self, study: Study) -> Gathering:
        if self.protocol == PAPER:
            return _Stress(*study.find(*self.needs))
        relative = study.distances(HIGH).unit / study.distances(LOW).unit
        return _Stress((0.0, 1.0), (0.0, relative))


class _Extent:
    def __init__(self, study: Study, space: str) -> None:
        self._distances, self._space = study.distances(space), space
        self._least, self._most = torch.inf, 0.0

    def take(self, block: Block) -> None:
        squared = block.squared(self._space)
        values = block.once(squared)
        self._most = max(self._most, float(values.max()))
        if float(values.min()) > self._least:
            return
        # The smallest may be that of two equal rows, which a product doesn't give as nothing.
        place = int(squared.argmin())
        row, other = block.some.start + place // squared.shape[1], block.others.start + place % squared.shape[1]
        ids = torch.tensor([row, other], device=squared.device)
        self._least = min(self._least, float(self._distances.direct_pairs(ids[:1], ids[1:])))

    def result(self) -> tuple[float, float]:
        return float(self._least) ** 0.5, self._most**0.5


class _Stress:
    def __init__(self, high: tuple[float, float], low: tuple[float, float]) -> None:
        self._extents = {HIGH: high, LOW: low}
        self._differences, self._whole = 0.0, 0.0

    def take(self, block: Block) -> None:
        high, low = self._scaled(block, HIGH), self._scaled(block, LOW)
        self._whole += float(high.square().sum())
        self._differences += float((high - low).square_().sum())

    def _scaled(self, block: Block, space: str) -> Tensor:
        least, most = self._extents[space]
        distances = block.once(block.squared(space)).clamp_min(0).double().sqrt_()
        return distances.sub_(least).div_(most - least if most > least else 1.0)

    def result(self) -> float:
        return (self._differences / self._whole) ** 0.5 if self._whole else float("nan")


NORMALIZED_STRESS = Measure(
    "normalized_stress",
    parts=lambda study: (Stress(study.protocol),),
    score=lambda study: Score(study.find(Stress(study.protocol))[0], remark="lower is better"),
)
