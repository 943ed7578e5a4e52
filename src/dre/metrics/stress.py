"""Normalised stress: how much the distances in the map differ from those between the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dre.metrics.extent import Extent, Range
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, Device, one_of, two_spaces
from dre.metrics.question import PAPER, PROTOCOLS, Measure, Question, Score
from dre.metrics.study import Gathering, Part, Precision, Study


def normalized_stress(X: Any, Y: Any, *, protocol: str = "standard", device: Device = "auto") -> float:
    """How much the distances in Y differ from those in X, relative to those in X: 0 when all are kept.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> normalized_stress(X, X), round(normalized_stress(X, 2 * X), 12), normalized_stress(X, 2 * X, protocol="paper") < 1e-9
    (0.0, 1.0, True)

    ``"standard"``: σ = sqrt(Σ (Dᵢⱼ - dᵢⱼ)² / Σ Dᵢⱼ²) over all pairs, D in X and d in Y. It depends on the scale of the map,
    which most methods leave open. ``"paper"``: the same of D and d after each has been scaled from its smallest and largest
    value to 0 and 1; the paper's Table 1 gives one minus that.

    The products are taken in float64 up to 5,000 rows and for data in float64, else in float32 where that is precise enough;
    the sums in float64.
    """
    one_of("protocol", protocol, PROTOCOLS)
    study = Study(two_spaces(X, Y, device), "stress")
    return NORMALIZED_STRESS.value(Question(study.n, protocol=protocol), study)


@dataclass(frozen=True)
class Stress:
    protocol: str
    precision: ClassVar[Precision] = Precision.VALUES

    @property
    def needs(self) -> tuple[Part, ...]:
        return (Extent(HIGH), Extent(LOW)) if self.protocol == PAPER else ()

    def begin(self, study: Study) -> Gathering:
        if self.protocol == PAPER:
            high, low = study.find(*self.needs)
            return _Stress(high, low)
        relative = study.distances(HIGH).unit / study.distances(LOW).unit
        return _Stress(Range(0.0, 1.0), Range(0.0, relative))


class _Stress:
    def __init__(self, high: Range, low: Range) -> None:
        self._high, self._low = high, low
        self._differences, self._whole = 0.0, 0.0

    def take(self, block: Block) -> None:
        high = self._high.scaled(block.once(block.squared(HIGH)))
        low = self._low.scaled(block.once(block.squared(LOW)))
        self._whole += float(high.square().sum())
        self._differences += float((high - low).square_().sum())

    def result(self) -> float:
        return (self._differences / self._whole) ** 0.5 if self._whole else float("nan")


def _score(question: Question, study: Study) -> Score:
    scale = "distances scaled to 0…1" if question.protocol == PAPER else "depends on the map's scale"
    return Score(study.find(Stress(question.protocol))[0], remark=f"{scale}; lower is better")


NORMALIZED_STRESS = Measure("normalized_stress", lambda question: (Stress(question.protocol),), _score)
