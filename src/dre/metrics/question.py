"""What is asked of a map, and a metric as data: what it needs gathered, and how its score is read off that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from dre.metrics.study import Part, Study

Array = np.ndarray[Any, Any]
STANDARD, PAPER = PROTOCOLS = ("standard", "paper")  # the textbook's way to count, and that of the paper's Table 1


class Train(NamedTuple):
    """Points of the map that were fitted, where those under study were held out."""

    places: Tensor  # (m, d)
    labels: Tensor  # (m,)
    own_labels: Tensor  # (n,) of the rows under study, on the same scale


@dataclass(frozen=True)
class Question:
    """How the map of n rows is to be judged."""

    n: int
    k: int = 1
    protocol: str = STANDARD
    shepard: str = "auto"  # how the Shepard goodness is computed
    levels: dict[str, Tensor] = field(default_factory=dict)  # labels (n,) as numbers, by the name of their level
    train: Train | None = None

    @property
    def labels(self) -> Tensor:
        """Those of the first level."""
        return next(iter(self.levels.values()))

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1 if self.levels else 0


class Score(NamedTuple):
    value: Any  # a number; by the name of a level where there are several
    per_point: Tensor | None = None  # (n,) what the value is the mean of
    remark: str = ""


@dataclass(frozen=True)
class Measure:
    """Every function that returns one number is one of these, and ``evaluate`` is a list of them."""

    name: str  # of its function
    parts: Callable[[Question], tuple[Part, ...]]
    score: Callable[[Question, Study], Score]
    applies: Callable[[Question], bool] = lambda question: True

    def value(self, question: Question, study: Study) -> float:
        return float(self._score(question, study).value)

    def of_points(self, question: Question, study: Study) -> Array:
        values = self._score(question, study).per_point
        if values is None:
            raise TypeError(f"{self.name} has no value of a single point")
        return np.asarray(values.cpu().numpy())

    def _score(self, question: Question, study: Study) -> Score:
        study.find(*self.parts(question))
        return self.score(question, study)
