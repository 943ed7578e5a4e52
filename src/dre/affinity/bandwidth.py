"""The search for one bandwidth per row, which both affinities need."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

STEPS = 100  # doubling or halving from 1 reaches any scale that data have; bisection then settles within 40


def solve_increasing(value: Callable[[Tensor], Tensor], target: float, n: int, like: Tensor, *, tolerance: float) -> Tensor:
    """For each of n rows the scale s > 0 where ``value(s)`` (n,), increasing in s, meets the target.

    Where no scale meets it, the end of the search is returned: nearly zero if the value is too large everywhere, huge if it is
    too small everywhere. ``like`` gives the device and the precision.
    """
    low = torch.zeros(n, dtype=like.dtype, device=like.device)
    high = torch.full_like(low, torch.inf)
    scale = torch.ones_like(low)
    for _ in range(STEPS):
        gap = value(scale) - target
        if bool((gap.abs() <= tolerance).all()):
            break
        low = torch.where(gap < 0, scale, low)
        high = torch.where(gap > 0, scale, high)
        middle = torch.where(high.isinf(), 2 * scale, (low + high) / 2)
        scale = torch.where(gap.abs() <= tolerance, scale, middle)
    return scale
