"""UMAP's V: fuzzy memberships that fall off from each row's nearest neighbor."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from dre.affinity import Affinity, check_scope, solve_increasing, warn_of_clamping

SMALLEST_BANDWIDTH = 1e-3  # UMAP's floor, as a part of the mean neighbor distance


@dataclass(frozen=True)
class Fuzzy(Affinity, name="fuzzy"):
    """The fuzzy simplicial set of UMAP.

    v(j|i) = exp(-max(0, d(xi, xj) - ρi) / σi), where ρi is the distance to the nearest neighbor that is not a duplicate, and σi
    is such that Σj v(j|i) = log2(n_neighbors). V = v + vᵀ - v·vᵀ.

    Parameters
    ----------
    n_neighbors : int, default=15
        Counts the row itself, as in UMAP: 15 means 14 others.
    scope : {"graph", "batch"}, default="graph"
        Search neighbors among all rows, or among the rows of each batch.

    Examples
    --------
    >>> str(Fuzzy(15))
    'fuzzy(15)'
    """

    n_neighbors: int = 15
    _: KW_ONLY
    scope: str = "graph"

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if self.n_neighbors < 2 or self.n_neighbors != int(self.n_neighbors):
            raise ValueError(f"n_neighbors={self.n_neighbors}: must be an integer of at least 2, the row itself and one other")

    def clamp_to(self, n: int) -> Fuzzy:
        if self.n_neighbors <= n:
            return self
        warn_of_clamping(
            f"n_neighbors {self.n_neighbors} is too large for {n} rows; {n} is used instead. "
            "Pass a smaller n_neighbors to choose it yourself."
        )
        return replace(self, n_neighbors=n)

    def count_neighbors(self, n: int) -> int:
        return max(1, min(n, self.n_neighbors) - 1)

    def conditional(self, distances: Tensor) -> Tensor:
        distances = distances.double()
        n_neighbors = distances.shape[1] + 1
        rho = distances.masked_fill(distances == 0, torch.inf).amin(1)
        rho = rho.masked_fill(rho.isinf(), 0.0)
        beyond = (distances - rho[:, None]).clamp_min(0)
        sigma = solve_increasing(lambda rows, s: (-beyond[rows] / s[:, None]).exp().sum(1), math.log2(n_neighbors), beyond)
        # As in UMAP, the mean includes the row itself at distance 0, and a row of duplicates uses the mean of all rows.
        mean = distances.sum(1) / n_neighbors
        floor = SMALLEST_BANDWIDTH * torch.where(rho > 0, mean, mean.mean())
        sigma = torch.maximum(sigma, floor)
        return torch.where(beyond > 0, (-beyond / sigma[:, None]).exp(), torch.ones_like(beyond))

    def combine(self, forward: Tensor, backward: Tensor) -> Tensor:
        return forward + backward - forward * backward
