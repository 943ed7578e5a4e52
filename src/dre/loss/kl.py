"""t-SNE's loss: the Kullback-Leibler divergence of the map's pairs from the target's."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from torch import Tensor

from dre.loss import Loss
from dre.loss.kernel import off_diagonal, squared_distances
from dre.target import Pairs


@dataclass(frozen=True)
class KL(Loss, name="kl"):
    """KL(P‖Q) = Σi≠j pij log(pij / qij) with qij ∝ (1 + |yi - yj|²)^(-(α + 1)/2), both summing to 1 over the batch.

    ``alpha`` is the degree of freedom: 1 is t-SNE; less gives heavier tails, and so finer clusters.
    """

    _: KW_ONLY
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha={self.alpha}: must be positive")

    def __call__(self, y: Tensor, pairs: Pairs) -> Tensor:
        log_kernel = -(self.alpha + 1) / 2 * squared_distances(y).log1p()
        log_z = off_diagonal(log_kernel, -math.inf).ravel().logsumexp(0)
        p = pairs.weight / (2 * pairs.weight.sum()).clamp_min(1e-30)  # a batch without any pair only repels
        return 2 * (p.xlogy(p) - p * pairs.at(log_kernel)).sum() + log_z
