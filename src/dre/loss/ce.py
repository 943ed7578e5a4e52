"""UMAP's loss: the fuzzy cross entropy between the memberships of the target and those of the embedding, over all pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import Tensor

from dre.affinity.target import Pairs
from dre.loss import Loss, Step
from dre.loss.curves import Attraction, LogOdds, Repulsion, fit_ab
from dre.loss.sums import sum_over_all, sum_over_links


@dataclass(frozen=True)
class CE(Loss, name="ce"):
    """CE(V‖W) = Σi≠j vij log(vij / wij) + (1 - vij) log((1 - vij) / (1 - wij)), divided by the batch size.

    wij = 1 / (1 + a·|yi - yj|^2b), with a and b from ``min_dist`` and ``spread`` as in UMAP.

    Parameters
    ----------
    min_dist, spread : float
        As in UMAP.
    negative_sample_rate : float or None
        None is the exact cross entropy over all pairs. UMAP samples so many repulsive terms per attractive one; a number
        weights the repulsion to that ratio.
    """

    _: KW_ONLY
    min_dist: float = 0.1
    spread: float = 1.0
    negative_sample_rate: float | None = None
    capturable = True

    def __post_init__(self) -> None:
        if not 0 <= self.min_dist <= self.spread or self.spread == 0:
            raise ValueError(f"min_dist={self.min_dist}: must lie between 0 and spread={self.spread}, which must be positive")
        if self.negative_sample_rate is not None and self.negative_sample_rate <= 0:
            raise ValueError(
                f"negative_sample_rate={self.negative_sample_rate}: must be positive, or None for the exact cross entropy"
            )

    def __call__(self, step: Step) -> Tensor:
        y = step.y
        pairs: Pairs = step.pairs
        odds = LogOdds(*fit_ab(self.min_dist, self.spread))
        rows, v = len(y), pairs.weight
        repulsion = sum_over_all(y, pairs, Repulsion(odds))  # Σ -log(1 - w)
        if self.negative_sample_rate is None:
            entropy = v.xlogy(v) + (1 - v).xlogy(1 - v)
            # Σ -v log w - (1 - v) log(1 - w) = Σ v·odds - Σ log(1 - w)
            return (2 * entropy.sum() + sum_over_links(y, pairs, odds) + repulsion) / rows
        attraction = sum_over_links(y, pairs, Attraction(odds))
        share = self.negative_sample_rate * 2 * v.sum() / (rows * (rows - 1))
        return (attraction + share * repulsion) / rows
