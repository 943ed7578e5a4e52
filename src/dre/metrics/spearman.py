"""Spearman's rank correlation of distances, where distances equal up to rounding share their mean rank.

``scipy.stats.rankdata`` separates values that differ in the last bit. Equal distances do after a matrix product, so that it
would rank the many ties of integer data at random. Tensors also stay on their device.
"""

from __future__ import annotations

import torch
from torch import Tensor

TOLERANCE = 1e-11  # relative difference of equal distances: what float64 products may leave


def spearman(a: Tensor, b: Tensor) -> float:
    """Return the rank correlation of two lists of nonnegative values; NaN where one of them is constant."""
    return _pearson(mean_ranks(a), mean_ranks(b))


def mean_ranks(values: Tensor) -> Tensor:
    """Rank nonnegative values (m,) from 1 in float64; equal values share the mean of their ranks."""
    values, order = values.sort()
    first = torch.ones_like(values, dtype=torch.bool)
    first[1:] = values[1:] > values[:-1] * (1 + TOLERANCE)
    group = first.cumsum(0) - 1
    sizes = group.bincount()
    means = sizes.cumsum(0).double() - (sizes.double() - 1) / 2
    return torch.empty_like(means[:1].expand(len(values))).scatter_(0, order, means[group])


def _pearson(a: Tensor, b: Tensor) -> float:
    a, b = a - a.mean(), b - b.mean()
    norms = float(a.norm() * b.norm())
    return float(a @ b) / norms if norms else float("nan")
