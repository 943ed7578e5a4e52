"""Silhouette: whether points of the embedding lie closer to their own class than to the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dre.metrics.inputs import LOW, Device, embedding_space, encode_labels
from dre.metrics.pairwise_pass import (
    Accumulator,
    EvalConfig,
    Metric,
    PairBlock,
    PairwiseStatistics,
    Precision,
    Score,
    Statistic,
)
from dre.neighbors.distances import with_transpose

Array = np.ndarray[Any, Any]
MAX_CLASSES = 1_000  # one sum per row and class is held


def silhouette(Y: Any, labels: Any, *, per_point: bool = False, device: Device = "auto") -> float | Array:
    """Compute the mean silhouette coefficient of the labels in the embedding, from -1 to 1.

    s = 1/n Σᵢ (bᵢ - aᵢ)/max(aᵢ, bᵢ), where aᵢ is the mean distance of i to the others of its class, and bᵢ its smallest mean
    distance to another class. It is 0 for the only point of a class. Values agree with scikit-learn's ``silhouette_score``.

    Parameters
    ----------
    Y : array-like of shape (n, d')
        Embedding.
    labels : array-like of shape (n,)
        At least 2 classes, and fewer than rows.
    per_point : bool, default=False
        Return the n coefficients instead of their mean.
    device : str or torch.device, default="auto"

    Returns
    -------
    float, or ndarray of shape (n,) with ``per_point=True``

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> round(silhouette(Y, ["a", "a", "b", "b"]), 3)
    0.9
    """
    pairwise = PairwiseStatistics(embedding_space(Y, device), "silhouette")
    config = EvalConfig(pairwise.n, levels={"labels": encode_labels(labels, pairwise.n)})
    if not SILHOUETTE.applies(config):
        raise ValueError(
            f"labels have {config.n_classes:,} classes for {pairwise.n:,} rows; a silhouette needs at least 2, at most "
            f"{MAX_CLASSES:,}, and fewer classes than rows; check that these are labels"
        )
    return SILHOUETTE.per_point(config, pairwise) if per_point else SILHOUETTE.value(config, pairwise)


@dataclass(frozen=True, eq=False)
class ClassDistanceSums:
    """Sums (n, classes) of the distances from each point of the embedding to the points of each class."""

    labels: Tensor
    requires: ClassVar[tuple[Statistic, ...]] = ()
    precision: ClassVar[Precision] = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        return _ClassDistanceSums(self.labels.to(pairwise.device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassDistanceSums) and other.labels is self.labels  # an EvalConfig holds labels once

    def __hash__(self) -> int:
        return id(self.labels)


class _ClassDistanceSums:
    def __init__(self, labels: Tensor) -> None:
        self._membership = torch.nn.functional.one_hot(labels).double()
        self._sums = torch.zeros_like(self._membership)

    def add(self, block: PairBlock) -> None:
        distances = block.squared(LOW).double().clamp_min(0).sqrt_()
        if block.rows == block.columns:
            distances.fill_diagonal_(0)
        with_transpose(self._add, block.rows, block.columns, distances)

    def _add(self, rows: slice, columns: slice, distances: Tensor) -> None:
        self._sums[rows] += distances @ self._membership[columns]

    def result(self) -> Tensor:
        return self._sums


def _score(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    (sums,) = pairwise.compute(ClassDistanceSums(config.labels))
    labels = config.labels.to(sums.device)
    sizes = labels.bincount(minlength=sums.shape[1]).double()
    own = labels[:, None]
    within = sums.gather(1, own)[:, 0] / (sizes[labels] - 1).clamp_min(1)
    between = (sums / sizes).scatter_(1, own, torch.inf).amin(1)
    values = (between - within) / torch.maximum(within, between).clamp_min(torch.finfo(torch.double).tiny)
    values.masked_fill_(sizes[labels] == 1, 0.0)
    return Score(float(values.mean()), values)


SILHOUETTE = Metric(
    "silhouette",
    statistics=lambda config: (ClassDistanceSums(config.labels),),
    score=_score,
    applies=lambda config: 2 <= config.n_classes < min(config.n, MAX_CLASSES + 1),
)
