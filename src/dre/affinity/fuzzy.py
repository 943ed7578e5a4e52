"""UMAP's V: fuzzy memberships that fall off from each row's nearest neighbour."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from dre.affinity import Affinity, check_scope, solve_increasing

# UMAP's floor: no bandwidth is smaller than this part of the mean neighbour distance.
SMALLEST_BANDWIDTH = 1e-3


@dataclass(frozen=True)
class Fuzzy(Affinity, name="fuzzy"):
    """v(j|i) = exp(-max(0, d(xi, xj) - ρi) / σi) with Σj v(j|i) = log2(n_neighbors); V = v + vᵀ - v·vᵀ.

    ρi is the distance to the nearest neighbour that is not a duplicate. ``n_neighbors`` counts the row itself, as in UMAP:
    15 means 14 others.

    >>> str(Fuzzy(15))
    'fuzzy(15)'
    """

    n_neighbors: int = 15
    _: KW_ONLY
    scope: str = "graph"

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if self.n_neighbors < 2 or self.n_neighbors != int(self.n_neighbors):
            raise ValueError(f"n_neighbors={self.n_neighbors}: must be a whole number from 2 up, the row itself and one other")

    def clamp_to(self, n: int) -> Fuzzy:
        if self.n_neighbors <= n:
            return self
        warnings.warn(
            f"n_neighbors {self.n_neighbors} is too large for {n} rows; {n} is used instead. "
            "Pass a smaller n_neighbors to choose it yourself.",
            stacklevel=2,
        )
        return replace(self, n_neighbors=n)

    def neighbors(self, n: int) -> int:
        return max(1, min(n, self.n_neighbors) - 1)

    def conditional(self, distances: Tensor) -> Tensor:
        distances = distances.double()
        counted = distances.shape[1] + 1
        rho = distances.masked_fill(distances == 0, torch.inf).amin(1)
        rho = rho.masked_fill(rho.isinf(), 0.0)
        beyond = (distances - rho[:, None]).clamp_min(0)
        sigma = solve_increasing(lambda rows, s: (-beyond[rows] / s[:, None]).exp().sum(1), math.log2(counted), beyond)
        # UMAP takes the mean over the row itself too, at distance 0; a row of duplicates borrows the mean of all rows.
        mean = distances.sum(1) / counted
        floor = SMALLEST_BANDWIDTH * torch.where(rho > 0, mean, mean.mean())
        sigma = torch.maximum(sigma, floor)
        return torch.where(beyond > 0, (-beyond / sigma[:, None]).exp(), torch.ones_like(beyond))

    def combine(self, there: Tensor, back: Tensor) -> Tensor:
        return there + back - there * back
