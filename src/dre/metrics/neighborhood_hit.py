"""Neighbourhood hit: how many of a point's neighbours in the map have its label."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from dre.metrics.labels import codes, levels
from dre.metrics.neighborhoods import Near
from dre.metrics.points import LOW, Device, check_k, map_alone, one_of
from dre.metrics.question import PAPER, PROTOCOLS, Measure, Question, Score
from dre.metrics.study import Study

Array = np.ndarray[Any, Any]


def neighborhood_hit(
    Y: Any, labels: Any, *, k: int = 7, protocol: str = "standard", per_point: bool = False, device: Device = "auto"
) -> float | Array:
    """The share of a point's k nearest in the map Y that have its label: 1 when classes lie apart.

    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [12.1]])
    >>> neighborhood_hit(Y, ["a", "a", "a", "b", "b", "b"], k=2)
    1.0

    NH = 1/(nk) Σᵢ |{j among the k nearest others of i : labelⱼ = labelᵢ}|. ``protocol="paper"`` counts the point itself
    among its k, as the paper's tables do; that raises it. ``per_point=True`` gives an array of n values.
    """
    one_of("protocol", protocol, PROTOCOLS)
    study = Study(map_alone(Y, device), "neighbourhood hit")
    question = Question(study.n, check_k(k, study.n), protocol, levels={"labels": codes(labels, study.n)})
    return NEIGHBORHOOD_HIT.of_points(question, study) if per_point else NEIGHBORHOOD_HIT.value(question, study)


def neighborhood_hit_by_level(
    Y: Any, labels: Any, *, k: int = 7, protocol: str = "standard", device: Device = "auto"
) -> dict[str, float]:
    """The neighbourhood hit at several levels of labels, such as clusters and the classes they belong to.

    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [2.1], [3.3], [10.0], [11.0], [12.1], [13.3]])
    >>> neighborhood_hit_by_level(Y, {"cluster": list("aabbccdd"), "class": list("xxxxyyyy")}, k=2)
    {'cluster': 0.5, 'class': 1.0}

    Where the finer level misses and the coarser one hits, the neighbours belong to related clusters: the map keeps the
    structure above the clusters.
    """
    one_of("protocol", protocol, PROTOCOLS)
    study = Study(map_alone(Y, device), "neighbourhood hit")
    question = Question(study.n, check_k(k, study.n), protocol, levels=levels(labels, study.n))
    return dict(_score_by_level(question, study).value)


def _shares(question: Question, study: Study, labels: Tensor) -> Tensor:
    """(n,) of k neighbours each; in the paper's protocol the first of them is the point itself."""
    near, itself = study.find(Near(LOW, question.k))[0].indices, question.protocol == PAPER
    labels = labels.to(near.device)
    others = near[:, : question.k - 1] if itself else near
    hits: Tensor = (labels[others] == labels[:, None]).sum(1).double()
    return (hits + itself) / question.k


def _remark(question: Question) -> str:
    return "counts itself" if question.protocol == PAPER else ""


def _score(question: Question, study: Study) -> Score:
    shares = _shares(question, study, question.labels)
    return Score(float(shares.mean()), shares, _remark(question))


def _score_by_level(question: Question, study: Study) -> Score:
    found = {name: float(_shares(question, study, labels).mean()) for name, labels in question.levels.items()}
    return Score(found, remark=_remark(question))


NEIGHBORHOOD_HIT = Measure(
    "neighborhood_hit", lambda question: (Near(LOW, question.k),), _score, lambda question: bool(question.levels)
)
NEIGHBORHOOD_HIT_BY_LEVEL = Measure(
    "neighborhood_hit_by_level",
    lambda question: (Near(LOW, question.k),),
    _score_by_level,
    lambda question: len(question.levels) > 1,
)
