"""How alike two rows are: weights over neighbours, found from their distances.

To add one, write a file here with a frozen dataclass like those beside it, or hand such an object to a ``Stage``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from dre.notation import Registry, write

AFFINITIES = Registry("affinity", __name__)
SCOPES = ("graph", "batch")


class Affinity:
    """Directed weights from each row to others, and how the two directions of a pair become one weight.

    ``scope="graph"``: the neighbours are sought among all rows, once per stage. ``scope="batch"``: among the rows of a batch.
    """

    name: ClassVar[str]
    scope: str

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        AFFINITIES.add(name, cls)

    def clamp_to(self, n: int) -> Affinity:
        """This affinity, or the nearest one that n rows allow (with a warning that says so)."""
        raise NotImplementedError

    def neighbors(self, n: int) -> int:
        """How many of the n - 1 others a row is compared with."""
        raise NotImplementedError

    def conditional(self, distances: Tensor) -> Tensor:
        """(n, k) distances, ascending in each row, to (n, k) directed weights."""
        raise NotImplementedError

    def combine(self, there: Tensor, back: Tensor) -> Tensor:
        """The symmetric weight of pairs whose directed weights are ``there`` and ``back``."""
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


def check_scope(scope: str) -> None:
    if scope not in SCOPES:
        raise ValueError(f"scope={scope!r}: an affinity is taken over {' or '.join(SCOPES)}")


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
