"""Ranks in which equal values share the mean of theirs, and the correlation of two lists of them."""

from __future__ import annotations

import torch
from torch import Tensor

SAME = 1e-11  # values that differ by less, in parts of themselves, are equal: so much may come from the products of float64


def mean_ranks(values: Tensor) -> Tensor:
    """(m,) float64, from 1 for the smallest of values that are not negative."""
    values, order = values.sort()
    first = torch.ones_like(values, dtype=torch.bool)
    first[1:] = values[1:] > values[:-1] * (1 + SAME)
    group = first.cumsum(0) - 1
    sizes = group.bincount()
    means = sizes.cumsum(0).double() - (sizes.double() - 1) / 2
    return torch.empty_like(means[:1].expand(len(values))).scatter_(0, order, means[group])


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's, which of ranks is Spearman's; not a number where one of them does not vary."""
    a, b = a - a.mean(), b - b.mean()
    both = float(a.norm() * b.norm())
    return float(a @ b) / both if both else float("nan")
