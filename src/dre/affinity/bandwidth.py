"""The search for one bandwidth per row, which both affinities need."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

STEPS = 200  # doubling or halving from 1 reaches any scale that data have; bisection then settles within 40

# Where scikit-learn and UMAP stop too. They also start at 1 and halve the same intervals: stopping with them at the same step
# makes the weights equal to theirs to about 1e-6, while a finer search would show how coarse theirs is, some 1e-3 at far pairs.
TOLERANCE = 1e-5


def solve_increasing(
    value: Callable[[Tensor, Tensor], Tensor], target: float, like: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """For each row of ``like`` (n, k) the scale s > 0 where ``value(rows, s)``, increasing in s, meets the target.

    Where no scale meets it, the end of the search is returned: nearly zero if the value is too large everywhere, huge if it is
    too small everywhere.
    """
    low = torch.zeros(len(like), dtype=like.dtype, device=like.device)
    high = torch.full_like(low, torch.inf)
    scale = torch.ones_like(low)
    rows = torch.arange(len(like), device=like.device)  # those that have not settled
    for _ in range(STEPS):
        gap = value(rows, scale[rows]) - target
        moving = gap.abs() > tolerance
        rows, gap = rows[moving], gap[moving]
        if len(rows) == 0:
            break
        now = scale[rows]
        low[rows] = torch.where(gap < 0, now, low[rows])
        high[rows] = torch.where(gap > 0, now, high[rows])
        scale[rows] = torch.where(high[rows].isinf(), 2 * now, (low[rows] + high[rows]) / 2)
    return scale
