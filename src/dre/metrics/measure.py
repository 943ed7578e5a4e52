"""A metric, as data: what it needs gathered over all pairs of rows, and how its score is read off that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from dre.metrics.study import Part, Study


class Score(NamedTuple):
    value: Any
    per_point: Tensor | None = None  # (n,)
    remark: str = ""


@dataclass(frozen=True)
class Measure:
    """Every function of one number is one of these, and ``evaluate`` is a list of them."""

    name: str  # of its function
    parts: Callable[[Study], tuple[Part, ...]]
    score: Callable[[Study], Score]
    applies: Callable[[Study], bool] = lambda study: True

    def __call__(self, study: Study, per_point: bool = False) -> Any:
        study.find(*self.parts(study))
        found = self.score(study)
        if per_point:
            assert found.per_point is not None
            return found.per_point.cpu().numpy()
        return found.value
