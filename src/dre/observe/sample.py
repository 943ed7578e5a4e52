"""A sample of the rows of a run, for observers: where they lie on the map at present, their labels and their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.affinity.bank import Bank
from dre.data.distance_matrix import DistanceRows
from dre.data.metric import RowMetric
from dre.data.subsample import FEWEST, evenly_spaced_ids, to_array
from dre.metrics.evaluation import quick_scores
from dre.metrics.inputs import label_array
from dre.training.run import EUCLIDEAN, NOT_PASSED, Run

Array = np.ndarray[Any, Any]
SCORED = 1000  # rows: as many as `dre fit` scores would take a noticeable part of a short fit


class RunSample:
    """Evenly spaced rows of this process; none of those that a map remembers from an earlier call.

    Parameters
    ----------
    run : Run
    most : int
        Rows at most.
    """

    def __init__(self, run: Run, most: int) -> None:
        self.run = run
        ids = None if run.origin is None else run.origin.ids
        passed = np.arange(run.rows.shape[0]) if ids is None else np.flatnonzero(np.asarray(ids) != NOT_PASSED)
        self.ids = passed[evenly_spaced_ids(len(passed), most)]
        self._tensor = torch.from_numpy(self.ids)
        self._scored: tuple[Array | None, RowMetric] | None = None  # rows that are scored, read once

    def coordinates(self, *, exact: bool = False) -> Array:
        """Return the coordinates (m, n_components) of the rows at present, float32.

        While free coordinates move, these are the map. Against the bank of all rows, they are those that the bank holds, which
        cost nothing: each is at most an epoch old. Otherwise, and if they are to be exact, the rows pass through the network.
        """
        run = self.run
        known = run.moving
        if known is None and not exact and isinstance(run.target, Bank):
            known = run.target.columns
        if known is not None:
            return _on_host(known[:, (self._tensor + run.first_row).to(known.device)].T)
        return _on_host(run.learner.embedding(self._tensor.to(run.runtime.device)))

    @property
    def ids_in_data(self) -> Array:
        """Positions of the rows in the data that the user passed."""
        ids = None if self.run.origin is None else self.run.origin.ids
        return self.ids if ids is None else np.asarray(ids)[self.ids]

    def labels(self, labels: Any, name: str = "labels") -> Array | None:
        """Return the labels of the rows, from those of all rows of the data."""
        if labels is None:
            return None
        ids = self.ids_in_data
        values = label_array(labels, len(labels), name)
        n = None if self.run.origin is None else self.run.origin.n
        if len(values) != n if n is not None else len(values) <= int(ids.max()):
            rows = "more" if n is None else f"{n:,}"
            raise ValueError(f"{name} has {len(values):,} values for {rows} rows: pass one for each row of the data")
        chosen: Array = values[ids]
        return chosen

    def scores(self, Y: Array, classes: Array | None = None, name: str = "labels") -> dict[str, float]:
        """Return quick scores of the coordinates Y of up to 1,000 rows, also of classes if there are any; none of few rows."""
        if len(Y) < FEWEST:
            return {}
        some = evenly_spaced_ids(len(Y), SCORED)
        rows, metric = self._scored_rows(some)
        known = None if classes is None else (name, classes[some])
        return quick_scores(rows, Y[some], known, metric=metric)

    def _scored_rows(self, some: Array) -> tuple[Array | None, RowMetric]:
        if self._scored is None:
            self._scored = self.measured_rows(some)
        return self._scored

    def measured_rows(self, some: Array) -> tuple[Array | None, RowMetric]:
        """Return some rows of this sample and the metric between them; None if there are no distances between rows."""
        origin, ids = self.run.origin, self.ids[some]
        if origin is None or origin.metric.has_transform:  # scaled rows are transformed, and standardized
            return _on_host(self.run.rows.take(torch.from_numpy(ids).to(self.run.runtime.device))), EUCLIDEAN
        if origin.metric.is_precomputed:
            is_square = origin.rows.shape[0] == origin.rows.shape[-1]
            return to_array(DistanceRows(origin.rows), ids) if is_square else None, origin.metric
        rows = to_array(origin.rows, ids)
        if origin.standardized is not None:
            rows = origin.standardized(torch.from_numpy(rows)).numpy()
        return rows, origin.metric


def _on_host(values: Tensor) -> Array:
    found: Array = values.detach().float().cpu().numpy()
    return found
