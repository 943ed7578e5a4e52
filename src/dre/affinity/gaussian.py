"""t-SNE's P: Gaussian weights whose entropy is that of ``perplexity`` equal neighbours."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from dre.affinity import TOLERANCE, Affinity, check_scope, solve_increasing

# Beyond three times the perplexity a Gaussian weight is negligible; every fast t-SNE cuts there.
REACH = 3
PERPLEXITY_TOLERANCE = 1e-3
CACHED = 2**16  # distances


@dataclass(frozen=True)
class Gaussian(Affinity, name="gaussian"):
    """p(j|i) = exp(-|xi - xj|² / 2σi²) / Σk exp(-|xi - xk|² / 2σi²), with σi such that 2^entropy is the perplexity.

    P is (p(j|i) + p(i|j)) / 2N; the constant falls away because the loss makes the weights of a batch sum to one.

    >>> str(Gaussian(30, scope="batch"))
    'gaussian(30, scope=batch)'
    """

    perplexity: float = 30
    _: KW_ONLY
    scope: str = "graph"

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if not 1 <= self.perplexity < math.inf:
            raise ValueError(f"perplexity={self.perplexity}: must be at least 1")

    def clamp_to(self, n: int) -> Gaussian:
        largest = max(1.0, (n - 1) / REACH)
        if self.perplexity <= largest:
            return self
        warnings.warn(
            f"perplexity {self.perplexity} is too large for {n} rows; {largest:.4g} is used instead. "
            "Pass a smaller perplexity to choose it yourself.",
            stacklevel=2,
        )
        return replace(self, perplexity=largest)

    def neighbors(self, n: int) -> int:
        reach = math.ceil(REACH * self.perplexity) if self.scope == "graph" else n - 1
        return max(1, min(n - 1, reach))

    def conditional(self, distances: Tensor) -> Tensor:
        if distances.device.type == "cpu":  # some rows at a time stay in its cache during the search
            return torch.cat([self._found(part) for part in distances.split(max(1, CACHED // distances.shape[1]))])
        return self._found(distances)

    def _found(self, distances: Tensor) -> Tensor:
        squared = distances.square().float().double()  # rounded as scikit-learn rounds them
        squared = squared - squared[:, :1]  # P does not change, and the nearest neighbour never underflows
        tolerance = min(TOLERANCE, 0.99 * PERPLEXITY_TOLERANCE / self.perplexity)
        precision = solve_increasing(
            lambda rows, s: -_entropy(squared[rows] * s[:, None]), -math.log(self.perplexity), squared, tolerance
        )  # 1 / 2σ²
        weights = (-squared * precision[:, None]).exp()
        return weights / weights.sum(1, keepdim=True)

    def combine(self, there: Tensor, back: Tensor) -> Tensor:
        return (there + back) / 2


def _entropy(exponent: Tensor) -> Tensor:
    """Entropy, in nats, of the weights exp(-exponent) of each row, whose smallest exponent is 0."""
    weights = (-exponent).exp()
    total = weights.sum(1)
    return total.log() + (weights * exponent.nan_to_num(posinf=0.0)).sum(1) / total
