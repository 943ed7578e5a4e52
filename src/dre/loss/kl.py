"""t-SNE's loss: the Kullback-Leibler divergence between the target's pairs and those of the embedding."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.affinity.target import Pairs
from dre.loss import Loss, Step
from dre.loss.curves import NegLogStudent, Student
from dre.loss.sums import sum_over_all, sum_over_links


@dataclass(frozen=True)
class KL(Loss, name="kl"):
    """KL(P‖Q) = Σi≠j pij log(pij / qij) with qij ∝ (1 + |yi - yj|²)^(-(α + 1)/2).

    Both are normalized over the batch, or over all rows if these are in a bank.

    Parameters
    ----------
    alpha : float
        Degrees of freedom. 1 is t-SNE; smaller values have heavier tails, and so give finer clusters.
    """

    _: KW_ONLY
    alpha: float = 1.0
    capturable = True
    reads_bank = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha={self.alpha}: must be positive")

    def __call__(self, step: Step) -> Tensor:
        y, exponent = step.y, (self.alpha + 1) / 2
        pairs: Pairs | BankPairs = step.pairs
        log_z = sum_over_all(y, pairs, Student(exponent)).clamp_min(torch.finfo(y.dtype).tiny).log()
        total = pairs.total.clamp_min(1e-30)  # a batch without any pair only repels
        entropy = pairs.entropy / total - total.log() * (pairs.total > 0)  # Σ p log p
        return entropy + sum_over_links(y, pairs, NegLogStudent(exponent)) / total + log_z
