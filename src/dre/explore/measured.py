"""All rows as vectors: their Euclidean distances order pairs as the metric does, or the metric itself compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dre.data.distance_matrix import DistanceRows
from dre.data.metric import MetricLike, RowMetric, row_metric, transform_rows
from dre.data.rows import chunk_length
from dre.data.subsample import vectors

Array = np.ndarray[Any, Any]
MAX_VALUES = 2**29  # float32 values that are held at once: 2 GB
PROJECTED = 512  # random directions in place of more columns; they keep distances to about 5 %


EUCLIDEAN = row_metric("euclidean")


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """All rows, ready for distances."""

    vectors: Array  # (n, d) float32; of Euclidean distances with mean 0: far from the origin they lose their last digits
    is_projected: bool  # whether random directions stand in for the columns
    metric: RowMetric = EUCLIDEAN  # between these vectors


def measure_rows(rows: Any, metric: MetricLike = "euclidean") -> MeasuredRows:
    """Read all rows of an array, a sparse matrix or Rows; those that would not fit into memory are projected.

    A metric without a transform compares the rows themselves; of "precomputed" they are the distances.

    >>> measure_rows(np.array([[3.0, 4.0], [6.0, 8.0]]), "cosine").vectors.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    measured = row_metric(metric)
    n, dim = rows.shape[0], int(np.prod(rows.shape[1:]))
    if not measured.has_transform:
        return MeasuredRows(_all_vectors(rows, measured), is_projected=False, metric=measured)
    is_projected = n * dim > MAX_VALUES and dim > PROJECTED
    width = PROJECTED if is_projected else dim
    directions = np.random.default_rng(0).normal(size=(dim, width)).astype(np.float32) / width**0.5 if is_projected else None
    found, step = np.empty((n, width), np.float32), chunk_length((dim,))
    for start in range(0, n, step):
        read = vectors(rows, np.arange(start, min(n, start + step)))
        moved = transform_rows(torch.from_numpy(read), measured.name).numpy()
        found[start : start + len(read)] = moved if directions is None else moved @ directions
    found -= found.mean(0, dtype=np.float64)
    return MeasuredRows(found, is_projected)


def _all_vectors(rows: Any, metric: RowMetric) -> Array:
    n, dim = rows.shape[0], int(np.prod(rows.shape[1:]))
    if n * dim > MAX_VALUES:
        raise ValueError(
            f"{n:,} rows of {dim:,} values are too many to compare under {metric}: pass trust=False and neighbors=False"
        )
    if metric.is_precomputed and not isinstance(rows, DistanceRows):
        rows = DistanceRows(rows)
    return vectors(rows, np.arange(n))
