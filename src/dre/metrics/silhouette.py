"""Silhouette of the labels: whether classes lie closer to themselves than to the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dre.metrics.labels import codes
from dre.metrics.pairs import Block
from dre.metrics.points import LOW, Device, map_alone
from dre.metrics.question import Measure, Question, Score
from dre.metrics.study import Gathering, Part, Precision, Study
from dre.neighbors.distances import with_transpose

Array = np.ndarray[Any, Any]
MOST_CLASSES = 1_000  # a sum for each row and class is held


def silhouette(Y: Any, labels: Any, *, per_point: bool = False, device: Device = "auto") -> float | Array:
    """How much closer a point of the map lies to its own class than to the next: from -1 to 1.

    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> round(silhouette(Y, ["a", "a", "b", "b"]), 3)
    0.9

    s = 1/n Σᵢ (bᵢ - aᵢ)/max(aᵢ, bᵢ), where aᵢ is the mean distance of i to the others of its class and bᵢ that to the class for
    which it is smallest; 0 for the only one of a class. ``per_point=True`` gives an array of n values.
    """
    study = Study(map_alone(Y, device), "silhouette")
    question = Question(study.n, levels={"labels": codes(labels, study.n)})
    if not SILHOUETTE.applies(question):
        limit = f"at least 2, and fewer than rows and than {MOST_CLASSES:,}"
        raise ValueError(f"{question.classes:,} classes among {study.n:,} rows; a silhouette needs {limit}: are these labels?")
    return SILHOUETTE.of_points(question, study) if per_point else SILHOUETTE.value(question, study)


@dataclass(frozen=True, eq=False)
class ToClasses:
    """(n, classes) the sum of the distances of each row of the map to those of each class."""

    labels: Tensor
    needs: ClassVar[tuple[Part, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        return _ToClasses(self.labels.to(study.device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToClasses) and other.labels is self.labels  # a question has its labels once

    def __hash__(self) -> int:
        return id(self.labels)


class _ToClasses:
    def __init__(self, labels: Tensor) -> None:
        self._member = torch.nn.functional.one_hot(labels).double()
        self._sums = torch.zeros_like(self._member)

    def take(self, block: Block) -> None:
        distances = block.squared(LOW).double().clamp_min(0).sqrt_()
        if block.some == block.others:
            distances.fill_diagonal_(0)
        with_transpose(self._add, block.some, block.others, distances)

    def _add(self, some: slice, others: slice, distances: Tensor) -> None:
        self._sums[some] += distances @ self._member[others]

    def result(self) -> Tensor:
        return self._sums


def _score(question: Question, study: Study) -> Score:
    sums = study.find(ToClasses(question.labels))[0]
    labels = question.labels.to(sums.device)
    sizes = labels.bincount(minlength=sums.shape[1]).double()
    own = labels[:, None]
    within = sums.gather(1, own)[:, 0] / (sizes[labels] - 1).clamp_min(1)
    between = (sums / sizes).scatter_(1, own, torch.inf).amin(1)
    values = (between - within) / torch.maximum(within, between).clamp_min(torch.finfo(torch.double).tiny)
    values.masked_fill_(sizes[labels] == 1, 0.0)
    return Score(float(values.mean()), values)


SILHOUETTE = Measure(
    "silhouette",
    parts=lambda question: (ToClasses(question.labels),),
    score=_score,
    applies=lambda question: 2 <= question.classes < min(question.n, MOST_CLASSES + 1),
)
