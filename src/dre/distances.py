"""Squared distances between rows in blocks, through one matrix product; and the direct ones, where its rounding matters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from dre.runtime import full_precision

BLOCK = {"cuda": 8192, "cpu": 1600}  # rows on a side: half a GiB of float64 on a GPU; on a CPU its cache
ELEMENTS = {"cuda": 2**27, "cpu": 2**18}  # values of rows that are worked on at once: beyond a CPU's cache it is far slower
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

    ``rows`` are divided by ``unit``, which is 1 unless squares would overflow or vanish in float32; distances are to be
    multiplied by it.
    """

    def __init__(self, rows: Tensor, dtype: torch.dtype | None = None) -> None:
        self.n, self.dim = rows.shape
        self.device = rows.device
        least, most = rows.aminmax(dim=0)
        self.unit = _unit(float(torch.maximum(-least.double(), most.double()).max()))
        rows = rows if rows.dtype == torch.float32 else rows.double()
        self.rows = rows if self.unit == 1 else rows / self.unit
        constant = least == most  # such columns, the margins of images for one, add nothing to a product, and are left out
        self._varies = (~constant).nonzero().ravel()
        mean = self.rows.mean(0, dtype=torch.double)
        self._origin = torch.where(constant, self.rows[0].double(), mean)  # products lose the less, the nearer rows lie to it
        self.norms = torch.empty(self.n, dtype=torch.double, device=self.device)  # (n,) squared, about the origin
        self._left: tuple[slice | None, Tensor]  # the factors of a stretch, as they stand on the left of a product
        self._multiply_in(dtype or torch.float32)
        # In eps, relative to (|a| + |b|)²: in float64 what no order of summation can exceed, in float32 by looking.
        self._roundings = {torch.double: self.dim / 4 + 4}
        if self.dtype == torch.float32:
            clear = self._clear_in_float32()
            if dtype is None and not clear:
                self._multiply_in(torch.double)

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
        if self._left[0] != some:  # the same for all blocks of a row, one after the other
            self._left = (some, _turned(self._factors[some]))
        with full_precision():
            squared = self._left[1] @ self._factors[others].T
        if some == others:
            squared.fill_diagonal_(torch.inf)
        return squared

    def from_points(self, points: Tensor, others: slice | None = None) -> Tensor:
        """(m, others) squared distances from any points to these rows, or to all, in float64."""
        points = points.double() - self._origin
        own = points.square().sum(1)
        parts = [
            torch.addmm(own[:, None] + self.norms[part], points, self._centred(part).T, alpha=-2)
            for part in (self.stretches() if others is None else [others])
        ]
        return torch.cat(parts, dim=1)

    def reach(self, points: Tensor) -> Tensor:
        """(m,) how far points lie from the origin of the products; of a row it is the root of its norm."""
        return (points.double() - self._origin).square_().sum(1).sqrt_()

    def margin(self, reach: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """How far off a product may be at about these squared distances (m, ...) from points with this reach (m,)."""
        dtype = dtype or self.dtype
        reach = reach.reshape(-1, *[1] * (squared.ndim - 1))
        rounding: Tensor = self._roundings[dtype] * torch.finfo(dtype).eps * (2 * reach + squared.sqrt()).square()
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

    def _multiply_in(self, dtype: torch.dtype) -> None:
        self.dtype, self._factors = dtype, self._factored(dtype)
        self._left = (None, self._factors)

    def _factored(self, dtype: torch.dtype) -> Tensor:
        """(n, columns + 2) rows about the origin, a one, and their norm: what the products are of."""
        all_vary = len(self._varies) == self.dim
        factors = torch.empty(self.n, len(self._varies) + 2, dtype=dtype, device=self.device)
        factors[:, -2] = 1
        step = max(1, self._elements() // self.dim)
        for start in range(0, self.n, step):
            part = slice(start, start + step)
            centred = self._centred(part)
            factors[part, :-2] = (centred if all_vary else centred[:, self._varies]).to(dtype)
            self.norms[part] = centred.square_().sum(1)
        factors[:, -1] = self.norms
        return factors

    def _clear_in_float32(self) -> bool:
        """Look at some rows: how much float32 rounds, and whether the nearest neighbours stand clear of that."""
        part = self.stretches()[0]
        some = self._spread(part.stop)
        true = self.from_points(self.rows[some], part).clamp_min_(0)
        self._roundings[torch.float32] = 1.0
        unit = self.margin(self.norms[some].sqrt(), true, torch.float32).clamp_min(torch.finfo(torch.double).tiny)
        off = self.block(part, part)[some].double() - true  # of a whole block: few rows would be multiplied in another way
        seen = float((off.abs_() / unit).masked_fill_(off.isinf(), 0).max())
        # Errors that are independent add up like a random walk; those of equal columns, all to one side, and more.
        self._roundings[torch.float32] = max(8.0, (self.dim + 2) ** 0.5, 4 * seen)
        some = self._spread(self.n)
        with full_precision():
            near = (_turned(self._factors[some]) @ self._factors.T).double().clamp_min_(0)
        near = near.topk(min(self.n, 6), largest=False).values[:, -1]
        return bool((self.margin(self.norms[some].sqrt(), near, torch.float32) <= CLEAR * near).double().mean() >= 0.5)

    def _spread(self, n: int) -> Tensor:
        """Some of the first n rows, from end to end."""
        return torch.linspace(0, n - 1, min(LOOKED_AT, n), device=self.device).long()


def _turned(factors: Tensor) -> Tensor:
    """(-2a, |a|², 1) of (a, 1, |a|²): its product with (b, 1, |b|²) is |a - b|²."""
    turned = -2 * factors
    turned[:, -2], turned[:, -1] = factors[:, -1], 1
    return turned


def _unit(largest: float) -> float:
    """A power of two, so that nothing is rounded when rows with this largest value are divided by it."""
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
