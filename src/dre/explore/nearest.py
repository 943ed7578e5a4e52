"""The nearest rows of every row in the data: exact where that is quick, else candidates that are compared exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import RowMetric
from dre.data.subsample import evenly_spaced_ids
from dre.explore.encode import smallest_unsigned
from dre.explore.measured import EUCLIDEAN
from dre.neighbors.search import EXACT_UP_TO, SELECTING, nearest
from dre.progress.display import progress_bar
from dre.runtime.threads import map_in_threads

Array = np.ndarray[Any, Any]
K = 10  # neighbors of a row
MAX_POINTS = 100_000  # larger maps have no neighbors: they would be most of the page
COMPONENTS = 64  # principal components in which candidates are searched
CANDIDATES = 60
RECALL_SAMPLE = 200
KEPT_SAMPLE = 1_000
BLOCK = 256  # rows whose candidates are compared at a time


@dataclass(frozen=True, eq=False)
class NearestRows:
    """The nearest rows of each row in the data, nearest first."""

    ids: Array  # (n, k), unsigned
    recall: float = 1.0  # share of the true neighbors, measured on a sample


def nearest_in_data(vectors: Array, k: int = K, metric: RowMetric = EUCLIDEAN) -> NearestRows:
    """Find the k nearest other rows of every row by the distances between their vectors.

    Parameters
    ----------
    vectors : array of shape (n, d)
    k : int, default=10
    metric : RowMetric, default=Euclidean

    Returns
    -------
    NearestRows

    Examples
    --------
    >>> nearest_in_data(np.array([[0.0], [1.0], [3.0]], np.float32), k=1).ids.ravel().tolist()
    [1, 0, 1]
    """
    n, dim = vectors.shape
    rows, k = torch.from_numpy(vectors), min(k, n - 1)
    with progress_bar("neighbors in the data", 3 * n) as advance:
        if not metric.has_transform or float(n) * n * (dim + SELECTING) <= EXACT_UP_TO or dim <= 2 * COMPONENTS:
            found = nearest(rows, k, metric=metric)
            return NearestRows(_small(found.indices), found.recall)
        reduced = _principal_components(rows)
        advance(n)
        candidates = nearest(reduced, min(CANDIDATES, n - 1)).indices
        advance(n)
        best = []
        for ids in map_in_threads(lambda block: _closest(rows, block, candidates[block], k), torch.arange(n).split(BLOCK)):
            best.append(ids)
            advance(len(ids))
    ids = torch.cat(best)
    return NearestRows(_small(ids), _recall(rows, ids))


def mean_kept(found: NearestRows, embedding: Array) -> float:
    """How many of the nearest rows in the data are among as many nearest points of a map, on average.

    Measured on a sample of ``KEPT_SAMPLE`` points.

    >>> line = np.array([[0.0], [1.0], [3.0]], np.float32)
    >>> mean_kept(nearest_in_data(line, k=1), line)
    1.0
    """
    k, sample = found.ids.shape[1], torch.from_numpy(evenly_spaced_ids(len(embedding), KEPT_SAMPLE))
    # Centered, since distances far from the origin lose their last digits in float32.
    points = torch.from_numpy((embedding - embedding.mean(0, dtype=np.float64)).astype(np.float32))

    def kept(block: Tensor) -> float:
        distances = torch.cdist(points[block], points).scatter_(1, block[:, None], torch.inf)
        on_map = distances.topk(k, largest=False).indices
        in_data = torch.from_numpy(found.ids[block.numpy()].astype(np.int64))
        return float((in_data[:, :, None] == on_map[:, None]).sum())

    return sum(map_in_threads(kept, sample.split(BLOCK))) / len(sample)


def _principal_components(rows: Tensor) -> Tensor:
    """The first principal components of rows with mean 0; the covariance is summed in float64."""
    covariance = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
    for product in map_in_threads(lambda part: part.T @ part, rows.split(8192)):
        covariance += product.double()
    directions: Tensor = torch.linalg.eigh(covariance).eigenvectors[:, -COMPONENTS:]
    return rows @ directions.float()


def _closest(rows: Tensor, block: Tensor, candidates: Tensor, k: int) -> Tensor:
    """Of the candidates of each row of a block, the k nearest by all columns."""
    squared = (rows[candidates] - rows[block][:, None]).square_().sum(2)
    return candidates.gather(1, squared.topk(k, largest=False).indices)


def _recall(rows: Tensor, ids: Tensor) -> float:
    """Share of the true neighbors that were found, by distance: of several rows at the same distance any one counts."""
    sample = torch.from_numpy(evenly_spaced_ids(len(rows), RECALL_SAMPLE))
    all_distances = torch.cdist(rows[sample], rows)
    all_distances.scatter_(1, sample[:, None], torch.inf)
    farthest = all_distances.topk(ids.shape[1], largest=False).values[:, -1:]
    return float((all_distances.gather(1, ids[sample]) <= farthest * (1 + 1e-4)).double().mean())


def _small(ids: Tensor) -> Array:
    return ids.numpy().astype(smallest_unsigned(len(ids)))
