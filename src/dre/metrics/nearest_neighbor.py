"""1-NN accuracy: whether the nearest point of the map has the same label."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from dre.metrics.labels import codes, plain_labels
from dre.metrics.neighborhoods import Near
from dre.metrics.points import LOW, Device, map_alone, points
from dre.metrics.question import Measure, Question, Score, Train
from dre.metrics.study import Study
from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_to


def nearest_neighbor(Y: Any, labels: Any, *, train: tuple[Any, Any] | None = None, device: Device = "auto") -> float:
    """The share of points whose label is that of the nearest other point.

    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> nearest_neighbor(Y, ["a", "a", "b", "b"])
    1.0
    >>> nearest_neighbor([[0.4], [10.7]], ["a", "a"], train=(Y, ["a", "a", "b", "b"]))
    0.5

    1-NN = 1/n Σᵢ [labelᵢ = label of the point nearest to i]. With ``train=(Y_train, labels_train)`` the nearest is sought
    among the training points: the accuracy on held-out rows. Without it among all other points of Y: leave-one-out. Of two that
    are equally near, the one with the lower index.
    """
    study = Study(map_alone(Y, device), "1-NN")
    own = {"labels": codes(labels, study.n)}
    if train is None and study.n < 2:
        raise ValueError(f"{study.n} rows have no neighbours; pass train=(Y_train, labels_train)")
    known = None if train is None else read_train(train, labels, study.spaces[LOW])
    return NEAREST_NEIGHBOR.value(Question(study.n, levels=own, train=known), study)


def read_train(train: Any, labels: Any, places: Tensor) -> Train:
    """The training points of a map, with their labels and those of the study's rows on one scale."""
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise ValueError("train must be the two (Y_train, labels_train)")
    known = points(train[0], "Y_train", places.device)
    if known.shape[1] != places.shape[1]:
        raise ValueError(f"Y has {places.shape[1]} columns and Y_train {known.shape[1]}; both must be places in the same map")
    own, theirs = plain_labels(labels, len(places), "labels"), plain_labels(train[1], len(known), "labels_train")
    both = codes(np.concatenate([own, theirs]), len(own) + len(theirs))
    return Train(known, both[len(own) :], both[: len(own)])


def _score(question: Question, study: Study) -> Score:
    if question.train is None:
        nearest = study.find(Near(LOW, question.k))[0].indices[:, 0].cpu()
        hits, remark = question.labels[nearest] == question.labels, "leave-one-out"
    else:
        known = question.train
        nearest = nearest_to(Distances(known.places), study.spaces[LOW], 1).indices[:, 0].cpu()
        hits, remark = known.labels[nearest] == known.own_labels, "nearest training row"
    return Score(float(hits.double().mean()), hits.double(), remark)


NEAREST_NEIGHBOR = Measure(
    "nearest_neighbor",
    parts=lambda question: (Near(LOW, question.k),) if question.train is None else (),
    score=_score,
    applies=lambda question: bool(question.levels),
)
