"""Squared distances between rows in blocks, through one matrix product; and the direct ones, where its rounding matters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from dre.runtime import full_precision

BLOCK = {"cuda": 8192, "cpu": 1600}  # rows on a side: half a GiB of float64 on a GPU; on a CPU its cache
ELEMENTS = {"cuda": 2**27, "cpu": 2**18}  # values held at once by what is not a block: arrays beyond the cache are far slower
TIE = 1e-12  # squared distances that differ by less, in parts of themselves, are equal: machines round differently by less
DUPLICATE = 1e-13  # of the squared norms: what the product leaves over of two equal rows
CLEAR = 5e-4  # float32 will do where its rounding is below this part of the distance to the nearest neighbours
SAFE = (2.0**-40, 2.0**50)  # the largest value of rows whose squared distances float32 can hold, with room on both sides
LOOKED_AT = 32  # rows that decide it


class Distances:
    """The distances among the rows of one array (n, d).

    ``dtype`` is that of the products. In float32 they cost half, but close pairs far from the origin drown in rounding; by
    default it is taken where the nearest neighbours stand clear of that. Whatever it is, ``margin`` says how far off a block
    may be, and ``direct`` settles what the margin leaves open.

    Squared distances, and the points that they are from, are in units of ``unit``: 1, unless squares would leave the range of
    float32.
    """

    def __init__(self, rows: Tensor, dtype: torch.dtype | None = None) -> None:
        self.n, self.dim = rows.shape
        self.device = rows.device
        self.unit = _unit(rows)
        rows = rows if rows.dtype == torch.float32 else rows.double()
        self.rows = rows if self.unit == 1 else rows / self.unit
        self._origin = self.rows.mean(0, dtype=torch.double)  # the product loses the less, the nearer the rows lie to it
        self.norms = torch.cat([self._centred(part).square().sum(1) for part in self.stretches()])  # (n,) squared, float64
        self.dtype = dtype or self._sufficient()
        self._factors = self._factored()

    def stretches(self) -> list[slice]:
        """The rows in pieces of equal size, a multiple of 8, of which two make a block."""
        limit = BLOCK.get(self.device.type, BLOCK["cpu"])
        size = -(-self.n // -(-self.n // limit))
        size += -size % 8
        return [slice(start, min(self.n, start + size)) for start in range(0, self.n, size)]

    def half(self) -> Iterator[tuple[slice, slice]]:
        """The blocks on and above the diagonal; the others are their transposes."""
        return combinations_with_replacement(self.stretches(), 2)

    def block(self, some: slice, others: slice) -> Tensor:
        """(some, others) squared distances, up to their margin; infinite from a row to itself, which is nobody's neighbour."""
        a = self._factors[some].clone()
        a[:, :-2] *= -2
        a[:, -2:] = a[:, -2:].flip(1)  # (-2a, |a|², 1) · (b, 1, |b|²) = |a - b|²
        with full_precision():
            squared = a @ self._factors[others].T
        if some == others:
            squared.fill_diagonal_(torch.inf)
        return squared

    def from_points(self, points: Tensor) -> Tensor:
        """(m, n) squared distances from any points to all rows, in float64."""
        points = points.double() - self._origin
        own = points.square().sum(1)
        parts = []
        for part in self.stretches():
            norms = own[:, None] + self.norms[part]
            parts.append(torch.addmm(norms, points, self._centred(part).T, alpha=-2))
        return torch.cat(parts, dim=1)

    def margin(self, points: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """How far off a product may be at about these squared distances (m, ...) from points (m, d).

        Rounding errors add up like a random walk over the values of a row, at worst; this is seven deviations of it, and 5 to
        30 times the largest error seen.
        """
        reach: Tensor = (points.double() - self._origin).square().sum(1).sqrt()
        reach = reach.reshape(-1, *[1] * (squared.ndim - 1))
        eps = torch.finfo(dtype or self.dtype).eps
        rounding: Tensor = max(8, 0.5 * (self.dim + 2) ** 0.5) * eps * (2 * reach + squared.sqrt()).square()
        return rounding

    def direct(self, points: Tensor, others: Tensor) -> Tensor:
        """(m, k) squared distances from points (m, d) to the rows with these numbers (m, k), summed over the differences."""
        step = max(1, self._elements() // max(1, others.shape[1] * self.dim))
        parts = [
            (some.double()[:, None, :] - self.rows[near].double()).square_().sum(2)
            for some, near in zip(points.split(step), others.split(step), strict=True)
        ]
        return torch.cat(parts)

    def direct_pairs(self, rows: Tensor, others: Tensor) -> Tensor:
        """(m,) the same between rows with these numbers (m,) and these (m,)."""
        step = max(1, self._elements() // self.dim)
        parts = [
            (self.rows[a].double() - self.rows[b].double()).square_().sum(1)
            for a, b in zip(rows.split(step), others.split(step), strict=True)
        ]
        return torch.cat(parts)

    def _elements(self) -> int:
        return ELEMENTS.get(self.device.type, ELEMENTS["cpu"])

    def _centred(self, part: slice) -> Tensor:
        return self.rows[part].double() - self._origin

    def _factored(self) -> Tensor:
        factors = torch.empty(self.n, self.dim + 2, dtype=self.dtype, device=self.device)
        for part in self.stretches():
            factors[part, :-2] = self._centred(part).to(self.dtype)
        factors[:, -2] = 1
        factors[:, -1] = self.norms
        return factors

    def _sufficient(self) -> torch.dtype:
        some = self.rows[torch.linspace(0, self.n - 1, min(LOOKED_AT, self.n), device=self.device).long()]
        near = self.from_points(some).clamp_min(0).topk(min(self.n, 6), largest=False).values[:, -1]
        rounding = self.margin(some, near, torch.float32)
        return torch.float32 if bool((rounding <= CLEAR * near).double().mean() >= 0.5) else torch.double


def _unit(rows: Tensor) -> float:
    """A power of two, so that nothing is rounded when rows are divided by it."""
    largest = float(rows.abs().max()) if rows.numel() else 1.0
    if largest == 0 or SAFE[0] <= largest <= SAFE[1]:
        return 1.0
    return float(2.0 ** math.floor(math.log2(largest)))


def both_ways(take: Callable[[slice, slice, Tensor], None], some: slice, others: slice, block: Tensor) -> None:
    """Hand over a block, and its transpose, in which the other rows are the first."""
    take(some, others, block)
    if some != others:
        take(others, some, block.T)


def pairwise_distances(a: Tensor, b: Tensor) -> Tensor:
    """(len(a), len(b)) Euclidean distances through a matrix product, in float64: in float32 it loses close pairs."""
    origin = b.double().mean(0)
    a, b = a.double() - origin, b.double() - origin
    norms = a.square().sum(1)[:, None] + b.square().sum(1)[None, :]
    squared = norms - 2 * (a @ b.T)
    return squared.masked_fill_(squared <= DUPLICATE * norms, 0.0).sqrt_()
