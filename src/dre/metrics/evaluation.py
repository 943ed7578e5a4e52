"""Evaluation of an embedding: all metrics that apply, with the distances computed once."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.data.metric import MetricLike, row_metric
from dre.metrics.centroids import CENTROID_CORRELATION
from dre.metrics.inputs import (
    HIGH,
    LOW,
    Device,
    check_choice,
    check_k,
    check_same_index,
    encode_levels,
    first_level,
    has_label,
    paired_spaces,
)
from dre.metrics.neighborhood_hit import (
    NEAREST_NEIGHBOR,
    NEIGHBORHOOD_HIT,
    NEIGHBORHOOD_HIT_BY_LEVEL,
    nearest_neighbor,
    read_reference,
)
from dre.metrics.pairwise_pass import PROTOCOLS, EvalConfig, PairwiseStatistics
from dre.metrics.shepard import METHODS, SHEPARD_GOODNESS
from dre.metrics.silhouette import SILHOUETTE
from dre.metrics.stress import NORMALIZED_STRESS
from dre.metrics.trustworthiness import CONTINUITY, TRUSTWORTHINESS, continuity, trustworthiness

Array = np.ndarray[Any, Any]


# In the order of the table. Results that are not one number, such as the recall curve, have functions of their own.
ALL_METRICS = (
    NEAREST_NEIGHBOR,
    NEIGHBORHOOD_HIT,
    TRUSTWORTHINESS,
    CONTINUITY,
    SHEPARD_GOODNESS,
    NORMALIZED_STRESS,
    SILHOUETTE,
    CENTROID_CORRELATION,
    NEIGHBORHOOD_HIT_BY_LEVEL,
)
CLASS_METRICS = (NEAREST_NEIGHBOR, NEIGHBORHOOD_HIT, SILHOUETTE, CENTROID_CORRELATION)  # those that need labels


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Any]):
    """Scores by the names of their functions; a mapping that prints as a table.

    Parameters
    ----------
    scores : dict of str to float
        ``neighborhood_hit_by_level`` is a dict by level.
    remarks : dict of str to str
        Notes beside the scores, such as an error bound.
    per_point : dict of str to ndarray of shape (n,)
        Values of every point, for the scores that are means over the points.
    title : str
        Sizes and settings of the evaluation.
    """

    scores: dict[str, Any]
    remarks: dict[str, str]
    per_point: dict[str, Array]
    title: str

    def __getitem__(self, name: str) -> Any:
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{width}s}{value:9.4f}  {remark}".rstrip() for name, value, remark in rows]
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(name, f"{value:.4f}", remark) for name, value, remark in self._rows()]
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in cells]
        return f"<table><caption>{html.escape(self.title)}</caption>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _rows(self) -> Iterator[tuple[str, float, str]]:
        for name, value in self.scores.items():
            if isinstance(value, dict):
                yield from (
                    (f"{name.removesuffix('_by_level')}, {level}", each, self.remarks[name]) for level, each in value.items()
                )
            else:
                yield name, value, self.remarks[name]


def evaluate(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    k: int = 7,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    protocol: str = "standard",
    reference: tuple[Any, Any] | None = None,
    shepard: str = "auto",
    device: Device = "auto",
) -> Evaluation:
    """Score an embedding Y of the rows X by all metrics that apply.

    Scores are ``trustworthiness``, ``continuity``, ``shepard_goodness`` and ``normalized_stress``. Labels add
    ``nearest_neighbor``, ``neighborhood_hit``, ``silhouette`` and, from 3 classes on, ``centroid_correlation``. Each is a
    function of ``dre.metrics``, whose docstring has its equation.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    Y : array-like of shape (n, d')
        Their embedding.
    labels : array-like of shape (n,), dict of str to array-like, or DataFrame, default=None
        Labels at one level, or at several by name, ``{"cluster": ..., "class": ...}``. The first level is used; all levels
        appear in ``neighborhood_hit_by_level``. Scores that are not defined for so many classes are left out.
    k : int, default=7
        Number of neighbors, below n/2.
    metric : str or callable, default="euclidean"
        Metric between rows of X: a name of ``dre.data.metric.METRICS``, ``"precomputed"`` if X is the matrix (n, n) of their
        distances, or a function of two vectors. Distances in Y are Euclidean.
    metric_kwds : dict, default=None
        Keywords of the metric.
    protocol : {"standard", "paper"}, default="standard"
        ``"paper"`` counts as the paper's tables do, see ``neighborhood_hit`` and ``normalized_stress``.
    reference : tuple of (array-like of shape (m, d'), array-like of shape (m,)), default=None
        Points and labels among which the 1-NN accuracy seeks neighbors, such as the training rows. None leaves one out.
    shepard : {"auto", "exact", "histogram"}, default="auto"
        Method of ``shepard_goodness``.
    device : str or torch.device, default="auto"

    Returns
    -------
    Evaluation
        A mapping from names to scores. ``per_point`` holds the values of every point.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> result = evaluate(X, X[:, :2], labels=X[:, 0] > 0)
    >>> round(result["neighborhood_hit"], 2)
    0.89
    >>> sorted(result)[:3]
    ['continuity', 'nearest_neighbor', 'neighborhood_hit']
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_choice("shepard", shepard, METHODS)
    if reference is not None and labels is None:
        raise ValueError("reference=(Y, labels) is for the 1-NN accuracy, which needs labels of the evaluated rows too")
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "evaluate")
    check_same_index(Y=Y, labels=labels)
    check_same_index(X=X, labels=labels)
    levels = {} if labels is None else encode_levels(labels, pairwise.n)
    known = None if reference is None else read_reference(reference, first_level(labels), pairwise.spaces[LOW])
    config = EvalConfig(pairwise.n, check_k(k, pairwise.n), protocol, shepard, levels, known)
    metrics = [each for each in ALL_METRICS if each.applies(config)]
    pairwise.compute(*(statistic for each in metrics for statistic in each.statistics(config)))
    results = {each.name: each.score(config, pairwise) for each in metrics}
    return Evaluation(
        {name: score.value for name, score in results.items()},
        {name: score.remark for name, score in results.items()},
        {name: score.per_point.cpu().numpy() for name, score in results.items() if score.per_point is not None},
        _title(config, pairwise, str(row_metric(metric, metric_kwds))),
    )


def class_scores(
    X: Any,
    Y: Any,
    labels: Mapping[str, Any],
    *,
    k: int = 7,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    protocol: str = "standard",
    device: Device = "auto",
) -> dict[str, dict[str, float]]:
    """Compute the scores of `evaluate` that need labels, for several labels, with the distances computed once.

    Parameters
    ----------
    X, Y, k, metric, metric_kwds, protocol, device
        As for ``evaluate``.
    labels : dict of str to array-like of shape (n,)
        Labels by name.

    Returns
    -------
    dict of str to dict of str to float
        Scores of each label.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> scores = class_scores(X, X[:, :2], {"sign": X[:, 0] > 0, "batch": np.arange(100) % 3})
    >>> {name: len(each) for name, each in scores.items()}
    {'sign': 3, 'batch': 4}
    """
    check_choice("protocol", protocol, PROTOCOLS)
    pairwise = PairwiseStatistics(paired_spaces(X, Y, device, metric=metric, metric_kwds=metric_kwds), "class scores")
    levels = encode_levels(labels, pairwise.n)
    k = check_k(k, pairwise.n)
    configs = {name: EvalConfig(pairwise.n, k, protocol, "auto", {name: codes}, None) for name, codes in levels.items()}
    defined = {name: [each for each in CLASS_METRICS if each.applies(config)] for name, config in configs.items()}
    pairwise.compute(*(one for name in configs for each in defined[name] for one in each.statistics(configs[name])))
    return {name: {each.name: each.score(configs[name], pairwise).value for each in defined[name]} for name in configs}


def quick_scores(
    X: Array | None,
    Y: Array,
    labels: tuple[str, Array] | None = None,
    *,
    metric: MetricLike = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """A few scores for summaries, on a sample.

    Parameters
    ----------
    X : ndarray of shape (n, d) or None
        Rows. None leaves out trustworthiness and continuity.
    Y : ndarray of shape (n, d')
        Their embedding.
    labels : tuple of (str, ndarray of shape (n,)), default=None
        Name and values of the labels of the 1-NN accuracy; rows without a label are left out of it.
    metric : str or callable, default="euclidean"
        Metric between rows of X.
    metric_kwds : dict, default=None
        Keywords of the metric.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> list(quick_scores(X, X[:, :2], ("sign", X[:, 0] > 0)))
    ['trustworthiness', 'continuity', '1-NN, sign']
    """
    scores: dict[str, float] = {}
    if X is not None:
        scores["trustworthiness"] = float(trustworthiness(X, Y, metric=metric, metric_kwds=metric_kwds))
        scores["continuity"] = float(continuity(X, Y, metric=metric, metric_kwds=metric_kwds))
    if labels is not None and (known := has_label(labels[1])).sum() > 1:
        scores[f"1-NN, {labels[0]}"] = nearest_neighbor(Y[known], labels[1][known])
    return scores


def _title(config: EvalConfig, pairwise: PairwiseStatistics, metric: str) -> str:
    columns = " → ".join(str(pairwise.spaces[space].shape[1]) for space in (HIGH, LOW))
    distance = f", {metric} metric" if metric != "euclidean" else ""
    level = f", labels: {next(iter(config.levels))}" if len(config.levels) > 1 else ""
    return f"{config.n:,} rows × {columns}, k = {config.k}{distance}, {config.protocol} protocol{level}"
