"""t-SNE's P: Gaussian weights whose bandwidths match a perplexity."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from dre.affinity import TOLERANCE, Affinity, check_scope, solve_increasing, warn_of_clamping
from dre.runtime import has_numba

NEIGHBORS_PER_PERPLEXITY = 3  # farther weights are negligible; every fast t-SNE truncates here
PERPLEXITY_TOLERANCE = 1e-3
CACHED = 2**16  # distances that stay in a CPU's cache during the search
HELD = 2**24  # distances that are searched at a time on a GPU, which needs some 50 bytes for each


@dataclass(frozen=True)
class Gaussian(Affinity, name="gaussian"):
    """The Gaussian affinity of t-SNE.

    p(j|i) = exp(-|xi - xj|² / 2σi²) / Σk exp(-|xi - xk|² / 2σi²), where σi is such that 2^entropy(p(·|i)) is the perplexity.
    P = (p(j|i) + p(i|j)) / 2N; the constant is omitted, because the loss normalizes the weights of a batch.

    Parameters
    ----------
    perplexity : float, default=30
        Effective number of neighbors, at least 1.
    scope : {"graph", "batch"}, default="graph"
        Search neighbors among all rows, three times as many as the perplexity; or use all other rows of each batch.

    Examples
    --------
    >>> str(Gaussian(30, scope="batch"))
    'gaussian(30, scope=batch)'
    """

    perplexity: float = 30
    _: KW_ONLY
    scope: str = "graph"

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if not 1 <= self.perplexity < math.inf:
            raise ValueError(f"perplexity={self.perplexity}: must be at least 1, and finite")

    def clamp_to(self, n: int) -> Gaussian:
        largest = max(1.0, (n - 1) / NEIGHBORS_PER_PERPLEXITY)
        if self.perplexity <= largest:
            return self
        warn_of_clamping(
            f"perplexity {self.perplexity} is too large for {n} rows; {largest:.4g} is used instead. "
            "Pass a smaller perplexity to choose it yourself."
        )
        return replace(self, perplexity=largest)

    def count_neighbors(self, n: int) -> int:
        k = math.ceil(NEIGHBORS_PER_PERPLEXITY * self.perplexity) if self.scope == "graph" else n - 1
        return max(1, min(n - 1, k))

    def conditional(self, distances: Tensor) -> Tensor:
        if distances.device.type == "cpu" and has_numba():
            return self._weights(distances)
        held = HELD if distances.is_cuda else CACHED
        return torch.cat([self._weights(part) for part in distances.split(max(1, held // distances.shape[1]))])

    def _weights(self, distances: Tensor) -> Tensor:
        squared = distances.square().float().double()  # rounded as in scikit-learn
        squared = squared - squared[:, :1]  # leaves P unchanged, and the nearest neighbor never underflows
        tolerance = min(TOLERANCE, 0.99 * PERPLEXITY_TOLERANCE / self.perplexity)
        if squared.device.type == "cpu" and has_numba():
            from dre.affinity.numba.bandwidth import gaussian_weights

            return gaussian_weights(squared, math.log(self.perplexity), tolerance)
        precision = solve_increasing(
            lambda rows, s: -_entropy(squared[rows] * s[:, None]), -math.log(self.perplexity), squared, tolerance
        )  # 1 / 2σ²
        weights = (-squared * precision[:, None]).exp()
        return weights / weights.sum(1, keepdim=True)

    def combine(self, forward: Tensor, backward: Tensor) -> Tensor:
        return (forward + backward) / 2


def _entropy(exponent: Tensor) -> Tensor:
    """Entropy in nats of the weights exp(-exponent) of each row, whose smallest exponent is 0."""
    weights = (-exponent).exp()
    total = weights.sum(1)
    return total.log() + (weights * exponent.nan_to_num(posinf=0.0)).sum(1) / total
