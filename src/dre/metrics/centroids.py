"""Global structure: whether classes that are far from each other stay far in the map."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from dre.distances import pairwise_distances
from dre.metrics.measure import Measure, Score
from dre.metrics.points import HIGH, LOW, Device, named_codes, two_spaces
from dre.metrics.study import Study

Array = np.ndarray[Any, Any]


class CentroidDistances(NamedTuple):
    """The distances between the centroids of classes, (classes, classes), in X and in its map."""

    classes: Array
    high: Array
    low: Array


def centroid_correlation(X: Any, Y: Any, labels: Any, *, device: Device = "auto") -> float:
    """Spearman's rank correlation of the distances between class centroids in X and in the map Y.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]])
    >>> centroid_correlation(X, -X, ["a", "a", "b", "b", "c", "c"])
    1.0

    ρ = corr(rank |Mₐ - M_b|, rank |mₐ - m_b|) over all pairs of classes, M their means in X and m in Y. It takes 3 classes.
    """
    return _correlation(centroid_distances(X, Y, labels, device=device))


def centroid_distances(X: Any, Y: Any, labels: Any, *, device: Device = "auto") -> CentroidDistances:
    """The distances themselves; ``dre.plot.centroids`` draws them."""
    spaces = two_spaces(X, Y, device)
    names, label = named_codes(labels, len(spaces[LOW]))
    if len(names) < 3:
        raise ValueError(f"{len(names)} classes; the order of their distances needs 3")
    return CentroidDistances(names, *_in_both(spaces, torch.from_numpy(label)))


def _correlation(found: CentroidDistances) -> float:
    upper = np.triu_indices(len(found.classes), 1)
    a, b = found.high[upper], found.low[upper]
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def _in_both(spaces: dict[str, Tensor], labels: Tensor) -> tuple[Array, Array]:
    return _between(spaces[HIGH], labels), _between(spaces[LOW], labels)


def _between(space: Tensor, labels: Tensor) -> Array:
    labels = labels.to(space.device)
    sizes = labels.bincount()
    sums = space.new_zeros(len(sizes), space.shape[1], dtype=torch.double).index_add_(0, labels, space.double())
    means = sums / sizes[:, None]
    return pairwise_distances(means, means).cpu().numpy()


def _score(study: Study) -> Score:
    classes = np.arange(int(study.labels.max()) + 1)
    return Score(_correlation(CentroidDistances(classes, *_in_both(study.spaces, study.labels))))


CENTROID_CORRELATION = Measure(
    "centroid_correlation",
    parts=lambda study: (),
    score=_score,
    applies=lambda study: bool(study.levels) and int(study.labels.max()) >= 2,
)
