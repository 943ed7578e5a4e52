"""Affinities: weights between a row and its neighbors, computed from their distances.

To add one, write a file here with a frozen dataclass like the others, or pass such an object to a ``Stage``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

import torch
from torch import Tensor

from dre.notation import Registry, write

AFFINITIES = Registry("affinity", __name__)
SCOPES = ("graph", "batch")
STEPS = 200  # doubling or halving from 1 reaches any scale of real data; bisection then converges within 40 steps

# Where scikit-learn and UMAP stop too. They also start at 1 and halve the same intervals, so stopping at the same step makes
# the weights equal to theirs to about 1e-6. A finer search would differ from theirs by some 1e-3 at far pairs.
TOLERANCE = 1e-5


class Affinity:
    """Directed weights from each row to its neighbors, and their symmetric combination.

    Attributes
    ----------
    name : str
        The name in texts, passed as a class argument: ``class Mine(Affinity, name="mine")``.
    scope : {"graph", "batch"}
        Where neighbors are searched: among all rows, once per stage, or among the rows of each batch.
    """

    name: ClassVar[str]
    scope: str

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        AFFINITIES.add(name, cls)

    def clamp_to(self, n: int) -> Affinity:
        """This affinity, or with a warning the closest one that n rows allow."""
        raise NotImplementedError

    def count_neighbors(self, n: int) -> int:
        """The number of neighbors of a row among n rows."""
        raise NotImplementedError

    def conditional(self, distances: Tensor) -> Tensor:
        """Directed weights from distances to neighbors.

        Parameters
        ----------
        distances : Tensor of shape (n, k)
            Ascending in each row.

        Returns
        -------
        Tensor of shape (n, k)
        """
        raise NotImplementedError

    def combine(self, forward: Tensor, backward: Tensor) -> Tensor:
        """Symmetric weights of pairs, from the weights in both directions."""
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


_clamps_silently = ContextVar("clamps silently", default=False)


@contextmanager
def clamping_silently() -> Iterator[None]:
    """Lower perplexity and n_neighbors without a warning inside, in this thread."""
    token = _clamps_silently.set(True)
    try:
        yield
    finally:
        _clamps_silently.reset(token)


def warn_of_clamping(message: str) -> None:
    """Warn in ``clamp_to``, unless the caller is inside of ``clamping_silently``."""
    if not _clamps_silently.get():
        warnings.warn(message, stacklevel=3)


def check_scope(scope: str) -> None:
    """Raise a ValueError unless the scope is known."""
    if scope not in SCOPES:
        raise ValueError(f"scope={scope!r}: must be {' or '.join(SCOPES)}")


def solve_increasing(
    value: Callable[[Tensor, Tensor], Tensor], target: float, like: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """Solve ``value(row, scale) = target`` for the scale of every row, by bisection.

    Parameters
    ----------
    value : callable
        Called as ``value(ids, scales)`` with the ids (m,) and scales (m,) of the rows that have not converged; returns (m,)
        values that increase with the scale.
    target : float
    like : Tensor of shape (n, k)
        Gives the number of rows, the dtype and the device.
    tolerance : float, default=1e-5
        Largest absolute difference between value and target.

    Returns
    -------
    Tensor of shape (n,)
        Positive scales. Where no scale reaches the target, the end of the search: nearly zero if all values are too large, huge
        if they are too small.

    Examples
    --------
    >>> solve_increasing(lambda ids, scales: scales**2, 9.0, torch.zeros(1, 1)).round(decimals=3)
    tensor([3.])
    """
    low = torch.zeros(len(like), dtype=like.dtype, device=like.device)
    high = torch.full_like(low, torch.inf)
    scale = torch.ones_like(low)
    active = torch.arange(len(like), device=like.device)  # rows that have not converged
    for _ in range(STEPS):
        gap = value(active, scale[active]) - target
        moving = gap.abs() > tolerance
        active, gap = active[moving], gap[moving]
        if len(active) == 0:
            break
        now = scale[active]
        low[active] = torch.where(gap < 0, now, low[active])
        high[active] = torch.where(gap > 0, now, high[active])
        scale[active] = torch.where(high[active].isinf(), 2 * now, (low[active] + high[active]) / 2)
    return scale
