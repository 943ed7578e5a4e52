"""t-SNE's loss: the Kullback-Leibler divergence between the target's pairs and those of the embedding."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from dre.loss import Loss, Step
from dre.loss.curves import NegLogStudent, Student
from dre.loss.pair_sums import sum_over_pairs, sum_over_target


@dataclass(frozen=True)
class KL(Loss, name="kl"):
    """KL(P‖Q) = Σi≠j pij log(pij / qij) with qij ∝ (1 + |yi - yj|²)^(-(α + 1)/2), both normalized over the batch.

    Parameters
    ----------
    alpha : float
        Degrees of freedom. 1 is t-SNE; smaller values have heavier tails, and so give finer clusters.
    """

    _: KW_ONLY
    alpha: float = 1.0
    capturable = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha={self.alpha}: must be positive")

    def __call__(self, step: Step) -> Tensor:
        y, pairs, exponent = step.y, step.pairs, (self.alpha + 1) / 2
        log_z = (2 * sum_over_pairs(y, Student(exponent))).clamp_min(torch.finfo(y.dtype).tiny).log()
        total = (2 * pairs.weight.sum()).clamp_min(1e-30)  # a batch without any pair only repels
        p = pairs.weight / total
        return 2 * (p.xlogy(p).sum() + sum_over_target(y, pairs, NegLogStudent(exponent)) / total) + log_z
