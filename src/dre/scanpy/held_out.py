"""How cells that a PCA has not seen differ from those that it was fitted to, so that new cells are judged as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch

from dre.data.gene_pca import share_outside
from dre.scanpy.labels import RANK, nearest_cells

Array = np.ndarray[Any, Any]
HELD_OUT, CALIBRATED, FEWEST = 4, 4_000, 100  # every fourth of so many cells is held out; fewer tell nothing
OUTSIDE = 0.005  # share of these cells that lie outside of the components


@dataclass(frozen=True)
class HeldOut:
    """What was measured on cells that a PCA has not seen; see `GenePCA` for its parameters of these names."""

    residual: float | None
    distance_ratio: float


def measure_held_out(X: Any, k: int, n_cells: int) -> HeldOut | None:
    """Compute k components without some of the cells, and look at these; None for too few. The reference has ``n_cells``.

    The loadings of a reference fit its own cells better than new ones. It keeps their noise as well, so that its own cells are
    farther from each other among the components than new ones are from them. How much it keeps is inverse to their number.
    """
    from sklearn.decomposition import PCA

    if X.shape[0] < FEWEST:
        return None
    is_held = np.arange(X.shape[0]) % HELD_OUT == 0
    seen, held = X[np.flatnonzero(~is_held)], X[np.flatnonzero(is_held)]
    k = min(k, min(seen.shape) - 1)
    pca = PCA(k, svd_solver="arpack" if scipy.sparse.issparse(X) else "randomized", random_state=0).fit(seen)
    rows, new = pca.transform(seen), pca.transform(held)
    outside = share_outside(held, pca.mean_.astype(np.float64), np.square(new, dtype=np.float64).sum(1))
    distance_ratio = _distance_ratio(rows, new) ** (len(rows) / n_cells)
    return HeldOut(float(np.quantile(outside, 1 - OUTSIDE)) or None, distance_ratio)


def _distance_ratio(rows: Array, new: Array) -> float:
    """Return how far new rows are from the others, relative to how far these are from each other: medians."""
    cells, some = torch.from_numpy(rows).float(), torch.arange(0, len(rows), HELD_OUT - 1)
    own = float(nearest_cells(cells, cells[some], RANK, some)[1][:, -1].median())
    others = float(nearest_cells(cells, torch.from_numpy(new).float(), RANK)[1][:, -1].median())
    return others / own if own > 0 and others > 0 else 1.0  # copies of a cell have no distance
