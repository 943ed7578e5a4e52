"""Global structure: whether classes that are far apart in X stay far apart in the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import MetricLike
from dre.metrics.inputs import HIGH, LOW, Device, Space, paired_spaces, unique_labels
from dre.metrics.pairwise_pass import EvalConfig, Metric, PairwiseStatistics, Score
from dre.metrics.spearman import spearman
from dre.neighbors.distances import with_transpose
from dre.neighbors.metric_distances import MetricDistances

Array = np.ndarray[Any, Any]
MAX_CLASSES = 3_000  # one distance per pair of classes is held


class CentroidDistances(NamedTuple):
    """Distances (classes, classes) between class centroids in X and in its embedding."""

    classes: Array
    high: Array
    low: Array


def centroid_correlation(
    X: Any,
    Y: Any,
    labels: Any,
    *,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    device: Device = "auto",
) -> float:
    """Compute Spearman's rank correlation of the distances between class centroids in X with those in Y.

    ρ = corr(rank |Mₐ - M_b|, rank |mₐ - m_b|) over all pairs of classes, with M their means in X and m in Y.

    Parameters
    ----------
    X, Y, labels, metric, metric_kwds, device
        As for ``centroid_distances``.

    Returns
    -------
    float
        NaN where all distances are equal.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]])
    >>> round(centroid_correlation(X, -X, ["a", "a", "b", "b", "c", "c"]), 12)
    1.0
    """
    distances = centroid_distances(X, Y, labels, metric=metric, metric_kwds=metric_kwds, device=device)
    return _correlation(distances.high, distances.low)


def centroid_distances(
    X: Any,
    Y: Any,
    labels: Any,
    *,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    device: Device = "auto",
) -> CentroidDistances:
    """Compute the distances between class centroids in X and in the embedding Y; ``dre.plot.centroids`` draws them.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    labels : array-like of shape (n,)
        At least 3 classes.
    metric : str or callable, default="euclidean"
        Metric between rows of X. Centroids are means of the transformed rows, see ``dre.data.metric``. Without a transform the
        distances of centroids are derived from those of rows, as between Euclidean points.
    metric_kwds : dict, default=None
        Keywords of the metric.
    device : str or torch.device, default="auto"

    Returns
    -------
    CentroidDistances

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]]
    >>> centroid_distances(X, X, ["a", "a", "b", "b", "c", "c"]).low[0].tolist()
    [0.0, 5.0, 20.0]
    """
    spaces = paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds)
    classes, codes = unique_labels(labels, len(spaces[LOW]))
    if not 3 <= len(classes) <= MAX_CLASSES:
        raise ValueError(f"labels have {len(classes):,} classes; comparing their distances needs 3 to {MAX_CLASSES:,}")
    return CentroidDistances(classes, *(_between(spaces[space], torch.from_numpy(codes)) for space in (HIGH, LOW)))


def _between(space: Space, labels: Tensor) -> Array:
    if not isinstance(space, Tensor):
        return _between_classes(space, labels)
    labels = labels.to(space.device)
    sizes = labels.bincount()
    sums = space.new_zeros(len(sizes), space.shape[1], dtype=torch.double).index_add_(0, labels, space.double())
    means = sums / sizes[:, None]
    # From differences: rounding of products would order classes that are equally far apart.
    return torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").cpu().numpy()


def _between_classes(distances: MetricDistances, labels: Tensor) -> Array:
    """Distances between centroids from those between rows: |Mₐ - M_b|² = m(a, b) - m(a, a)/2 - m(b, b)/2.

    m(a, b) is the mean squared distance of a row in a to one in b. It holds between Euclidean points, and needs no others.
    """
    member = torch.nn.functional.one_hot(labels).double()
    sums = torch.zeros(member.shape[1], member.shape[1], dtype=torch.double)

    def add(rows: slice, columns: slice, squared: Tensor) -> None:
        sums.add_(member[rows].T @ squared @ member[columns])

    for rows, columns in distances.upper_blocks():
        squared = distances.block(rows, columns)
        with_transpose(add, rows, columns, squared.fill_diagonal_(0.0) if rows == columns else squared)
    sizes = member.sum(0)
    mean = sums / (sizes[:, None] * sizes)
    within = mean.diagonal() / 2
    return (mean - within[:, None] - within).clamp_min(0).fill_diagonal_(0).sqrt().numpy()


def _correlation(high: Array, low: Array) -> float:
    upper = np.triu_indices(len(high), 1)
    return spearman(torch.from_numpy(high[upper]), torch.from_numpy(low[upper]))


def _score(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    return Score(_correlation(*(_between(pairwise.spaces[space], config.labels) for space in (HIGH, LOW))))


CENTROID_CORRELATION = Metric(
    "centroid_correlation",
    statistics=lambda config: (),
    score=_score,
    applies=lambda config: 3 <= config.n_classes <= MAX_CLASSES,
)
