"""Global structure: whether classes that are far from each other stay far in the map."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dre.metrics.labels import named_codes
from dre.metrics.mean_ranks import correlation, mean_ranks
from dre.metrics.points import HIGH, LOW, Device, two_spaces
from dre.metrics.question import Measure, Question, Score
from dre.metrics.study import Study

Array = np.ndarray[Any, Any]
MOST_CLASSES = 3_000  # a distance for each pair of them is held


class CentroidDistances(NamedTuple):
    """The distances between the centroids of classes, (classes, classes), in X and in its map."""

    classes: Array
    high: Array
    low: Array


def centroid_correlation(X: Any, Y: Any, labels: Any, *, device: Device = "auto") -> float:
    """Spearman's rank correlation of the distances between class centroids in X and in the map Y.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]])
    >>> round(centroid_correlation(X, -X, ["a", "a", "b", "b", "c", "c"]), 12)
    1.0

    ρ = corr(rank |Mₐ - M_b|, rank |mₐ - m_b|) over all pairs of classes, M their means in X and m in Y. It takes 3 classes.
    """
    return _correlation(centroid_distances(X, Y, labels, device=device))


def centroid_distances(X: Any, Y: Any, labels: Any, *, device: Device = "auto") -> CentroidDistances:
    """The distances themselves; ``dre.plot.centroids`` draws them."""
    spaces = two_spaces(X, Y, device)
    names, label = named_codes(labels, len(spaces[LOW]))
    if not 3 <= len(names) <= MOST_CLASSES:
        raise ValueError(f"{len(names):,} classes; the order of their distances needs 3 to {MOST_CLASSES:,}")
    return CentroidDistances(names, *_in_both(spaces, torch.from_numpy(label)))


def _correlation(found: CentroidDistances) -> float:
    upper = np.triu_indices(len(found.classes), 1)
    high, low = (mean_ranks(torch.from_numpy(distances[upper])) for distances in (found.high, found.low))
    return correlation(high, low)


def _in_both(spaces: dict[str, Tensor], labels: Tensor) -> tuple[Array, Array]:
    return _between(spaces[HIGH], labels), _between(spaces[LOW], labels)


def _between(space: Tensor, labels: Tensor) -> Array:
    labels = labels.to(space.device)
    sizes = labels.bincount()
    sums = space.new_zeros(len(sizes), space.shape[1], dtype=torch.double).index_add_(0, labels, space.double())
    means = sums / sizes[:, None]
    # From the differences: products would make a difference between classes that are equally far apart.
    return torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").cpu().numpy()


def _score(question: Question, study: Study) -> Score:
    return Score(_correlation(CentroidDistances(np.arange(question.classes), *_in_both(study.spaces, question.labels))))


CENTROID_CORRELATION = Measure(
    "centroid_correlation", lambda question: (), _score, lambda question: 3 <= question.classes <= MOST_CLASSES
)
