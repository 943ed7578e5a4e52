"""Which distances a fit follows: a metric with a transform, one that is searched, a matrix of distances, or given neighbors.

What the network reads is another question. It reads the rows, whatever the metric, so that ``transform`` is a forward pass. Of
a dense matrix of distances it reads the distances of each row to the fitted ones, which new rows have too. A sparse matrix has
only those to neighbors. There it reads coordinates of the graph, which new rows do not have.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.manifold import spectral_embedding

from dre.affinity import clamping_silently
from dre.affinity.landmarks import LANDMARKS, Landmarks
from dre.data.device_array import to_host
from dre.data.distance_matrix import check_distances
from dre.data.metric import TRANSFORMS, RowMetric, row_metric
from dre.data.rows import is_rows, read_all
from dre.data.scaling import Scaling
from dre.data.subsample import evenly_spaced_ids
from dre.data.validation import check_memory
from dre.neighbors.distance_graph import neighbors_in_graph
from dre.neighbors.metric_distances import MetricDistances
from dre.neighbors.search import Neighbors, check_neighbors, count_others, nearest
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule
from dre.progress.activity import activity
from dre.progress.display import say
from dre.training.targets import reads_input_graph

Array = np.ndarray[Any, Any]
GRAPH_COORDINATES = 32  # that the network reads of a sparse matrix of distances


class Followed(NamedTuple):
    """What a fit follows: the recipe for as many neighbors as there are, and what was measured for it."""

    recipe: Recipe
    neighbors: Neighbors | None = None  # None: those that a stage finds by itself
    landmarks: Landmarks | None = None  # None: Euclidean ones


@dataclass(frozen=True, eq=False)
class InputDistances:
    """The distances of the rows of a fit."""

    metric: RowMetric
    X: Any  # what the network reads
    knn: Any = None  # neighbors that are known: a pair of arrays, or a sparse matrix
    matrix: Array | None = None  # (n, n) of distances, if they are known

    @classmethod
    def of(cls, X: Any, metric: Any, kwds: Mapping[str, Any] | None, knn: Any = None) -> InputDistances:
        """Check a metric and what the user passed, before anything is computed."""
        measured = row_metric(metric, kwds)
        if not measured.is_precomputed:
            return cls(measured, X, knn)
        if knn is not None:
            raise ValueError("metric='precomputed' takes the distances as X: pass them, or rows with precomputed_knn, not both")
        D = check_distances(to_host(X, "X"))
        return cls(measured, _graph_coordinates(D), D) if scipy.sparse.issparse(D) else cls(measured, D, matrix=D)

    @property
    def are_given(self) -> bool:
        """Whether they are those of all rows, of which a fit can't take a sample."""
        return self.knn is not None or self.matrix is not None

    @property
    def lack_features(self) -> bool:
        """Whether new rows have nothing that the network could read."""
        return self.metric.is_precomputed and self.matrix is None

    @property
    def read_units(self) -> bool:
        """Whether columns with large values outweigh others in these distances."""
        return not (self.metric.is_precomputed or self.metric.kind.boolean or self.metric.kind.unitless)

    def check_rows(self, *, is_sample: bool, is_shared: bool) -> None:
        """Raise a ValueError if a part of the rows is fitted where the distances are those of all."""
        if self.are_given and (is_sample or is_shared):
            what = "metric='precomputed'" if self.metric.is_precomputed else "precomputed_knn"
            raise ValueError(f"{what} has the neighbors of all rows: fit them all in one process, without sample")
        if is_shared and not self.metric.has_transform:
            raise ValueError(
                f"metric={self.metric} is searched by one process: fit without ranks, or use {', '.join(TRANSFORMS)}"
            )

    def follow(
        self, recipe: Recipe, X: Any, scaling: Scaling, device: torch.device, *, is_chosen: bool, quiet: bool
    ) -> Followed:
        """Find the neighbors of the fitted rows X where the metric is not that of the network's input.

        Parameters
        ----------
        recipe : Recipe
        X : rows that are fitted
        scaling : Scaling
            Knows how rows are standardized before the metric compares them.
        device : torch.device
            Of the network.
        is_chosen : bool
            Whether the user has chosen the perplexity, and is warned if it is lowered.
        quiet : bool
            Say nothing about it otherwise.
        """
        if self.metric.has_transform and self.knn is None:
            return Followed(recipe)
        stages = [stage for stage in recipe.schedule if reads_input_graph(stage)]
        if not stages and self.knn is None:
            raise ValueError(
                f"metric={self.metric}: no stage has a graph of the input, and inside of a batch distances are Euclidean. "
                f"Choose another recipe, such as 'auto':\n{recipe.schedule}"
            )
        n = X.shape[0]
        k = max((stage.affinity.count_neighbors(n) for stage in stages), default=1)
        # An optional stage is judged by Euclidean distances between the features, and may only win by them.
        recipe = replace(recipe, schedule=Schedule(*(stage for stage in recipe.schedule if not stage.optional)))
        if self.knn is not None:
            found = _given(self.knn, n, k)
            return Followed(_lowered(recipe, found.indices.shape[1], is_chosen=is_chosen, quiet=quiet), found)
        if device.type != "cpu" and not quiet:
            say(f"dre: {self.metric} distances are computed on the CPU")
        measured = X if self.metric.is_precomputed else self._measured_rows(X, scaling)
        found = nearest(measured, k, metric=self.metric)
        found = found._replace(method=f"{found.method} {self.metric}")
        reads = any(loss.reads_landmarks for stage in recipe.schedule for loss in (stage.loss, stage.free_loss))
        return Followed(recipe, found, self._landmarks(measured) if reads else None)

    def _measured_rows(self, X: Any, scaling: Scaling) -> Any:
        """The rows between which the metric measures: as they are, or standardized."""
        rows: Any = read_all(X) if is_rows(X) else to_host(X, "X")
        if scaling.column_mean is not None:
            if scipy.sparse.issparse(rows):
                check_memory(rows, "X", np.float64)
                rows = rows.toarray()
            rows = scaling.standardized(torch.from_numpy(np.asarray(rows, np.float64))).numpy()
        return self.metric.prepare(rows)

    def _landmarks(self, rows: Any) -> Landmarks:
        distances = MetricDistances.of(rows, self.metric)
        ids = evenly_spaced_ids(distances.n, LANDMARKS)
        with activity(f"measuring {self.metric} distances to landmarks"):
            found = np.concatenate([distances.values(part, ids) for part in distances.tiles()])
        return Landmarks.standardized(torch.from_numpy(ids), torch.from_numpy(found).float())


def _given(knn: Any, n: int, k: int) -> Neighbors:
    """Check neighbors that the user passed, and return as many as the recipe reads, or as there are."""
    if scipy.sparse.issparse(knn):
        found = neighbors_in_graph(knn, n, k)
        if found.completed:
            rows = "1 row lists" if found.completed == 1 else f"{found.completed:,} rows list"
            say(f"dre: {rows} fewer neighbors than most: paths along the graph complete them")
        return Neighbors(found.indices, found.distances)
    if not isinstance(knn, (tuple, list)) or len(knn) not in (2, 3):  # UMAP's third item is a search index
        raise TypeError("precomputed_knn must be a pair of arrays, (indices, distances), or a sparse matrix of distances")
    indices, distances = _own(knn[0]), _own(knn[1])
    return check_neighbors(indices, distances, n, max(1, min(k, count_others(indices, n))))


def _own(X: Any) -> Any:
    """Return a tensor as it is, and anything else as an array that torch may share: it warns of read-only memory."""
    if isinstance(X, torch.Tensor):
        return X
    values = np.asarray(X)
    return values if values.flags.writeable else values.copy()


def _lowered(recipe: Recipe, k: int, *, is_chosen: bool, quiet: bool) -> Recipe:
    """Lower perplexity and n_neighbors of the stages that read the given neighbors to what k of them allow."""
    with clamping_silently():
        stages = [
            replace(stage, affinity=stage.affinity.clamp_to(k + 1)) if reads_input_graph(stage) else stage
            for stage in recipe.schedule
        ]
    changed = [(old, new) for old, new in zip(recipe.schedule, stages, strict=True) if old.affinity != new.affinity]
    if not changed:
        return recipe
    old, new = (stage.affinity for stage in changed[0])
    needed = old.count_neighbors(10**9)
    lowered = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.3g}", str(new))
    text = f"{k} neighbors of each row are given, and {old} needs {needed}: {lowered} is used instead"
    if is_chosen:
        warnings.warn(f"{text}. Pass more neighbors, or choose a smaller value.", stacklevel=5)
    elif not quiet:
        say(f"dre: {text}")
    return replace(recipe, schedule=Schedule(*stages))


def _graph_coordinates(D: Any) -> Array:
    """Spectral coordinates of a sparse matrix of distances: similar for rows that many short paths connect.

    A distance d counts exp(-d² / (σᵢσⱼ)), with σ the farthest neighbor of each row.
    """
    n = D.shape[0]
    row = np.repeat(np.arange(n), np.diff(D.indptr))
    farthest = np.zeros(n)
    np.maximum.at(farthest, row, D.data)
    scale = farthest[row] * farthest[D.indices]
    weights = np.exp(-np.divide(D.data**2, scale, out=np.zeros_like(scale, dtype=np.float64), where=scale > 0))
    graph = scipy.sparse.csr_matrix((weights, D.indices, D.indptr), D.shape)
    graph = graph.maximum(graph.T)
    count = min(GRAPH_COORDINATES, n - 2)
    with activity("finding coordinates of the graph"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")  # its parts are then apart in the coordinates
        found: Array = spectral_embedding(graph, n_components=count, random_state=0, drop_first=False)
    return found
