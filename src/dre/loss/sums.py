"""Sums over i ≠ j that losses are made of: inside a batch, or of a batch against the bank of all rows."""

from __future__ import annotations

from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.affinity.target import Pairs
from dre.loss.bank_sums import sum_over_bank, sum_over_neighbors
from dre.loss.pair_sums import Curve, sum_over_pairs, sum_over_target


def sum_over_all(y: Tensor, pairs: Pairs | BankPairs, curve: Curve) -> Tensor:
    """Σ curve(|yi - yj|²) over all i ≠ j: the rows of the batch, or an estimate for all rows."""
    if isinstance(pairs, BankPairs):
        return sum_over_bank(y, pairs, curve)
    return 2 * sum_over_pairs(y, curve)


def sum_over_links(y: Tensor, pairs: Pairs | BankPairs, curve: Curve) -> Tensor:
    """Σ wij · curve(|yi - yj|²) over all i ≠ j with the weights of the target."""
    if isinstance(pairs, BankPairs):
        return sum_over_neighbors(y, pairs, curve)
    return 2 * sum_over_target(y, pairs, curve)
