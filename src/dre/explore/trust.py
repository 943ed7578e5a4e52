"""Trustworthiness of every point of a map, and the column that shows it: on a scale that means the same on every page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import RowMetric
from dre.data.subsample import evenly_spaced_ids
from dre.explore.columns import Column, make_scale
from dre.explore.measured import EUCLIDEAN, MeasuredRows
from dre.explore.ramps import trust_ramp
from dre.neighbors.metric_distances import MetricDistances
from dre.plot.colors import TRUST_ENDS, TRUST_EXPLAINED
from dre.progress.display import progress_bar
from dre.runtime.threads import map_in_threads

Array = np.ndarray[Any, Any]
TRUST = "trust"
EXACT_TRUST = 10_000  # points up to which all pairs are compared
TRUST_SAMPLE = 5_000  # points that each point of a larger map is compared with
NEIGHBORS = 7
BLOCK = 1024  # points at a time
EXPLAINED = f"Trustworthiness of each point. {TRUST_EXPLAINED['trustworthiness']}. The colors mean the same on every page."


def trust_column(rows: MeasuredRows, embedding: Array, name: str = TRUST) -> Column:
    """The column of the trustworthiness of each point; points with low values are drawn on top."""
    made, ramp, (low, high) = make_scale(name, point_trust(rows.vectors, embedding, rows.metric)), trust_ramp(), TRUST_ENDS
    made = replace(made, colors=ramp.colors, dark=ramp.dark, low=low, high=high, low_on_top=True)
    return replace(made, scales=("linear",), scale="linear", fixed=True, explain=EXPLAINED)


def point_trust(vectors: Array, embedding: Array, metric: RowMetric = EUCLIDEAN) -> Array:
    """Trustworthiness of each point, float32 (n,); for large n an estimate against a sample of ``TRUST_SAMPLE`` points.

    ``vectors`` (n, d) are those of `dre.explore.measured.MeasuredRows`, between which the metric measures.
    The k nearest points of a sample lie further away than those of the full map, so the estimate has a coarser scale.
    """
    if len(vectors) <= EXACT_TRUST:
        from dre.metrics import trustworthiness

        return np.asarray(trustworthiness(vectors, embedding, k=NEIGHBORS, metric=metric, per_point=True), dtype=np.float32)
    sample = torch.from_numpy(evenly_spaced_ids(len(vectors), TRUST_SAMPLE))
    # Centered, since distances far from the origin lose their last digits in float32.
    x, y = (torch.from_numpy((each - each.mean(0, dtype=np.float64)).astype(np.float32)) for each in (vectors, embedding))
    sample_x, sample_y, found = x[sample], y[sample], []
    measured = None if metric.has_transform else MetricDistances.of(vectors, metric)

    def distances_in_data(block: Tensor) -> Tensor:
        if measured is None:
            return torch.cdist(x[block], sample_x)
        return torch.from_numpy(measured.values(block.numpy(), sample.numpy()))

    def trust(block: Tensor) -> Tensor:
        return _block_trust(distances_in_data(block), y[block], sample_y, sample[None] == block[:, None])

    with progress_bar("trust", len(x)) as advance:
        for values in map_in_threads(trust, torch.arange(len(x)).split(BLOCK)):
            found.append(values)
            advance(len(values))
    return torch.cat(found).numpy()


def _block_trust(distances: Tensor, y: Tensor, sample_y: Tensor, is_self: Tensor) -> Tensor:
    """1 − Σ (rank − k)₊ over the k nearest in the map, divided by its largest possible value."""
    m, k = sample_y.shape[0], NEIGHBORS
    nearest = torch.cdist(y, sample_y).masked_fill_(is_self, torch.inf).topk(k, largest=False).indices
    distances = distances.masked_fill_(is_self, torch.inf)
    own = distances.gather(1, nearest).split(1, dim=1)
    # Counted, as bytes: sorting all distances for the ranks of k of them takes ten times as long.
    ranks = torch.stack([(distances < each).view(torch.uint8).sum(1, dtype=torch.int32) for each in own], dim=1) + 1
    return 1 - (ranks - k).clamp_min(0).sum(1) / (k * (2 * m - 3 * k - 1) / 2)
