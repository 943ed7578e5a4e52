"""Mean and squared deviations of each column, of values as large and as small as float64 holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import NamedTuple

import torch
from torch import Tensor

MIN_RELATIVE_STD = 1e-13  # of the column's mean: less is rounding, and the column counts as constant
Pieces = Callable[[], Generator[Tensor, None, None]]


class Moments(NamedTuple):
    """Mean of each column, and its summed squared deviations in a unit whose square neither overflows nor vanishes."""

    mean: Tensor
    squares: Tensor
    unit: float
    n: int

    @property
    def std(self) -> Tensor:
        return self.unit * (self.squares / self.n).sqrt()

    @property
    def is_constant(self) -> Tensor:
        """Whether the values of a column differ by no more than rounding."""
        return self.std <= MIN_RELATIVE_STD * self.mean.abs()

    @property
    def is_finite(self) -> bool:
        return bool(self.mean.isfinite().all() and self.squares.isfinite().all())

    def column_scales(self) -> Tensor:
        """Return the standard deviations; for equal values 1, and for values that differ by rounding their size."""
        flat = torch.where(self.squares > 0, self.mean.abs().clamp_min(1.0), 1.0)
        return torch.where(self.is_constant, flat, self.std)

    def cpu(self) -> Moments:
        """Return the same on the host."""
        return self._replace(mean=self.mean.cpu(), squares=self.squares.cpu())

    @classmethod
    def merged(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of all rows, from those of disjoint parts of them.

        >>> x = torch.tensor([[1.0], [3.0], [7.0], [9.0]], dtype=torch.double)
        >>> Moments.merged([find_moments(lambda part=part: iter([part]), 2) for part in x.split(2)]).mean.tolist()
        [5.0]
        """
        n, unit = sum(part.n for part in parts), max(part.unit for part in parts)
        first = parts[0].mean
        mean = first + sum(part.n / n * (part.mean - first) for part in parts)  # exact where all means are equal
        unit = max([unit, *(float((part.mean - mean).abs().max()) for part in parts)])
        squares = torch.zeros_like(first)
        for part in parts if unit > 0 else []:
            squares += part.squares * (part.unit / unit) ** 2 + part.n * ((part.mean - mean) / unit).square()
        return cls(mean, squares, unit, n)

    def scale(self) -> float:
        """Return the root mean square deviation of all values; 1 for equal rows."""
        return self.unit * math.sqrt(float(self.squares.sum()) / (self.n * self.squares.numel())) or 1.0


def find_moments(pieces: Pieces, n: int) -> Moments:
    """Find the moments of n rows, which are read in pieces, twice or three times.

    >>> find_moments(lambda: (torch.full((5, 1), 0.1, dtype=torch.double) for _ in range(9)), 45).scale()
    1.0
    """
    total: Tensor | None = None
    for part in pieces():
        total = part.sum(0) if total is None else total + part.sum(0)
    assert total is not None  # there is at least one row
    found = _deviations(pieces, total / n, n)
    rounded = found.is_constant & (found.squares > 0)
    if not bool(rounded.any()):
        return found
    with closing(pieces()) as first:  # the mean of equal values can differ from them in its last bits
        return _deviations(pieces, torch.where(rounded, next(first)[0], found.mean), n)


def _deviations(pieces: Pieces, mean: Tensor, n: int) -> Moments:
    squares, unit = torch.zeros_like(mean), 0.0
    for part in pieces():
        deviation = part - mean
        largest = float(deviation.abs().max())
        if largest > unit:
            squares *= (unit / largest) ** 2
            unit = largest
        if unit > 0:
            squares += (deviation / unit).square_().sum(0)
    return Moments(mean, squares, unit, n)
