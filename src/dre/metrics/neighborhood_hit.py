"""Neighbourhood hit: how many of a point's neighbours in the map have its label."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from dre.metrics.measure import Measure, Score
from dre.metrics.neighborhoods import Near
from dre.metrics.points import LOW, Device, check_k, codes, levels, map_alone, one_of
from dre.metrics.protocol import PAPER, PROTOCOLS
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
    spaces = map_alone(Y, device)
    study = Study(spaces, check_k(k, len(spaces[LOW])), protocol=protocol, title="neighbourhood hit")
    study.levels = {"labels": codes(labels, study.n)}
    return NEIGHBORHOOD_HIT(study, per_point)  # type: ignore[no-any-return]


def neighborhood_hit_by_level(
    Y: Any, levels_of_labels: Any, *, k: int = 7, protocol: str = "standard", device: Device = "auto"
) -> dict[str, float]:
    """The neighbourhood hit at several levels of labels, such as clusters and the classes they belong to.

    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [2.1], [3.3], [10.0], [11.0], [12.1], [13.3]])
    >>> neighborhood_hit_by_level(Y, {"cluster": list("aabbccdd"), "class": list("xxxxyyyy")}, k=2)
    {'cluster': 0.5, 'class': 1.0}

    Where the finer one misses and the coarser one doesn't, neighbours that are not of the same cluster are of a related one:
    the map keeps what lies above the clusters.
    """
    one_of("protocol", protocol, PROTOCOLS)
    spaces = map_alone(Y, device)
    study = Study(spaces, check_k(k, len(spaces[LOW])), protocol=protocol, title="neighbourhood hit")
    study.levels = levels(levels_of_labels, study.n)
    return BY_LEVEL(study)  # type: ignore[no-any-return]


def _shares(study: Study, labels: Tensor) -> Tensor:
    """(n,) of k neighbours each; in the paper's protocol the first of them is the point itself."""
    near, itself = study.find(Near(LOW))[0].indices, study.protocol == PAPER
    labels = labels.to(near.device)
    others = near[:, : study.k - 1] if itself else near
    hits: Tensor = (labels[others] == labels[:, None]).sum(1).double()
    return (hits + itself) / study.k


def _score(study: Study) -> Score:
    shares = _shares(study, study.labels)
    return Score(float(shares.mean()), shares, "counts itself" if study.protocol == PAPER else "")


NEIGHBORHOOD_HIT = Measure("neighborhood_hit", lambda study: (Near(LOW),), _score, lambda study: bool(study.levels))
BY_LEVEL = Measure(
    "neighborhood_hit_by_level",
    parts=lambda study: (Near(LOW),),
    score=lambda study: Score({name: float(_shares(study, labels).mean()) for name, labels in study.levels.items()}),
    applies=lambda study: len(study.levels) > 1,
)
