"""Squared distances between rows in blocks, through one matrix product; and the direct ones, where its rounding matters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from dre.runtime import full_float32, tf32_products, triton_applies

BLOCK = {"cuda": 8192, "cpu": 1600}  # rows on a side: half a GiB of float64 on a GPU; on a CPU its cache
ELEMENTS = {"cuda": 2**27, "cpu": 2**18}  # values of rows that are worked on at once: beyond a CPU's cache it is far slower
TIE = 1e-12  # squared distances that differ by less, in parts of themselves, are equal: machines round differently by less
DUPLICATE = 1e-13  # of the squared norms: what the product leaves over of two equal rows
CLEAR = 5e-4  # float32 will do where its rounding is below this part of the distance to the nearest neighbours
CLEAR_SHORT = 2e-2  # so will short products, whose answers are all looked at again
ALIGNED = 8  # values: rows of a multiple of it are what tensor cores take
SAFE = (2.0**-40, 2.0**50)  # the largest value of rows whose squared distances float32 can hold, with room on both sides
LOOKED_AT = 32  # rows that decide it
TINY = torch.finfo(torch.double).tiny


class Distances:
    """The distances among the rows of one array (n, d).

    ``dtype`` is that of the products. In float32 they cost half, but close pairs far from the origin drown in rounding; by
    default it is taken where the nearest neighbours stand clear of that. Where ``short`` is allowed, the ten leading bits
    alone are multiplied, if they still do: many times as quick on a GPU, for a search that looks at its answers again.
    Whatever it is, ``margin`` says how far off a block may be, and ``direct`` settles what the margin leaves open.

    ``rows`` are divided by ``unit``, which is 1 unless squares would overflow or vanish in float32; distances are to be
    multiplied by it.
    """

    def __init__(self, rows: Tensor, dtype: torch.dtype | None = None, *, short: bool = False) -> None:
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
        self._choose(dtype, short=short)

    @property
    def is_short(self) -> bool:
        return self._short

    def tiles(self) -> list[slice]:
        """The rows in pieces of equal size, a multiple of 8, of which two make a block."""
        limit = BLOCK.get(self.device.type, BLOCK["cpu"])
        size = -(-self.n // -(-self.n // limit))
        size += -size % 8
        return [slice(start, min(self.n, start + size)) for start in range(0, self.n, size)]

    def half(self) -> Iterator[tuple[slice, slice]]:
        """The blocks on and above the diagonal; the others are their transposes."""
        return combinations_with_replacement(self.tiles(), 2)

    def block(self, some: slice, others: slice) -> Tensor:
        """(some, others) squared distances, up to their margin; infinite from a row to itself, which is nobody's neighbour."""
        if self._left[0] != some:  # the same for all blocks of a row, one after the other
            self._left = (some, self._turned(self._factors[some]))
        squared = self._product(self._left[1], self._factors[others])
        if some == others:
            squared.fill_diagonal_(torch.inf)
        return squared

    def from_points(self, points: Tensor, others: slice | None = None) -> Tensor:
        """(m, others) squared distances from any points to these rows, or to all, in float64."""
        points = points.double() - self._origin
        own = points.square().sum(1)
        parts = [
            torch.addmm(own[:, None] + self.norms[part], points, self._centred(part).T, alpha=-2)
            for part in (self.tiles() if others is None else [others])
        ]
        return torch.cat(parts, dim=1)

    def reach(self, points: Tensor) -> Tensor:
        """(m,) how far points lie from the origin of the products; of a row it is the root of its norm."""
        return (points.double() - self._origin).square_().sum(1).sqrt_()

    def margin(self, reach: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """How far off a product may be at about these squared distances (m, ...) from points with this reach (m,)."""
        dtype = dtype or self.dtype
        # In eps, relative to (|a| + |b|)²: in float64 what no order of summation can exceed, in float32 by looking.
        rounding = self.dim / 4 + 4 if dtype == torch.double else self._rounding
        reach = reach.reshape(-1, *[1] * (squared.ndim - 1))
        off: Tensor = rounding * torch.finfo(dtype).eps * (2 * reach + squared.sqrt()).square()
        return off

    def direct(self, points: Tensor, others: Tensor) -> Tensor:
        """(m, k) squared distances from points (m, d) to the rows with these numbers (m, k), summed over the differences."""
        if triton_applies(points):
            from dre.neighbors.triton.direct import direct

            return direct(points, self.rows, others)
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

    def _choose(self, dtype: torch.dtype | None, *, short: bool) -> None:
        """The quickest products that will do."""
        if dtype == torch.double:
            self._multiply_in(torch.double)
            return
        if short:
            self._multiply_in(torch.float32, short=True)
            if self._clear(CLEAR_SHORT):
                return
        self._multiply_in(torch.float32)
        if not self._clear(CLEAR) and dtype is None:
            self._multiply_in(torch.double)

    def _multiply_in(self, dtype: torch.dtype, *, short: bool = False) -> None:
        self.dtype, self._short, self._lost = dtype, short, 0.0
        self._factors = self._factored()
        self._left = (None, self._factors)

    def _factored(self) -> Tensor:
        """(n, columns) rows about the origin, ones, and their norm in as many parts: what the products are of."""
        varying = len(self._varies)
        parts = 2 if self._short else 1  # what ten bits leave of a norm is multiplied too
        width = varying + 2 * parts
        width += -width % ALIGNED if self.device.type == "cuda" else 0
        factors = torch.zeros(self.n, width, dtype=self.dtype, device=self.device)
        factors[:, -2 * parts : -parts] = 1
        step = max(1, self._elements() // self.dim)
        for start in range(0, self.n, step):
            part = slice(start, start + step)
            centred = self._centred(part)
            factors[part, :varying] = (centred if varying == self.dim else centred[:, self._varies]).to(self.dtype)
            self.norms[part] = centred.square_().sum(1)
            factors[part, -parts] = self.norms[part].to(self.dtype)
            if self._short:
                whole = factors[part, :varying].clone()
                _shorten(factors[part])
                away = (factors[part, :varying] - whole).norm(dim=1).double() / self.norms[part].sqrt().clamp_min(TINY)
                self._lost = max(self._lost, float(away.max()))
                factors[part, -1] = (self.norms[part] - factors[part, -2]).float()
                _shorten(factors[part, -1:])
        return factors

    def _turned(self, factors: Tensor) -> Tensor:
        """(-2a, |a|², 1) of (a, 1, |a|²): its product with (b, 1, |b|²) is |a - b|²."""
        parts = 2 if self._short else 1
        turned = -2 * factors
        turned[:, -2 * parts : -parts], turned[:, -parts:] = factors[:, -parts:], 1
        return turned

    def _product(self, left: Tensor, factors: Tensor) -> Tensor:
        with tf32_products() if self._short else full_float32():
            return left @ factors.T

    def _clear(self, enough: float) -> bool:
        """Look at some rows: how much a product rounds, and whether the nearest neighbours stand clear of that."""
        part = self.tiles()[0]
        some = self._spread(part.stop)
        true = self.from_points(self.rows[some], part).clamp_min_(0)
        self._rounding = 1.0
        unit = self.margin(self.norms[some].sqrt(), true).clamp_min(TINY)
        off = self.block(part, part)[some].double() - true  # of a whole block: few rows would be multiplied in another way
        seen = float((off.abs_() / unit).masked_fill_(off.isinf(), 0).max())
        # Errors that are independent add up like a random walk; those of equal columns, all to one side, and more.
        walk = max(8.0, (self.dim + 2) ** 0.5)
        # What shortening took from two rows can all lie along their product, whatever was seen in some of them.
        self._rounding = max(seen, self._lost / torch.finfo(torch.float32).eps) + walk if self._short else max(walk, 4 * seen)
        some = self._spread(self.n)
        near = self._product(self._turned(self._factors[some]), self._factors).double().clamp_min_(0)
        near = near.topk(min(self.n, 6), largest=False).values[:, -1]
        return bool((self.margin(self.norms[some].sqrt(), near) <= enough * near).double().mean() >= 0.5)

    def _spread(self, n: int) -> Tensor:
        """Some of the first n rows, from end to end."""
        return torch.linspace(0, n - 1, min(LOOKED_AT, n), device=self.device).long()


def _shorten(x: Tensor) -> None:
    """Round float32 to ten bits, in place; tensor cores would cut the rest off, all to one side."""
    x.copy_(((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32))


def _unit(largest: float) -> float:
    """A power of two, so that nothing is rounded when rows with this largest value are divided by it."""
    if largest == 0 or SAFE[0] <= largest <= SAFE[1]:
        return 1.0
    return float(2.0 ** math.floor(math.log2(largest)))


def with_transpose(take: Callable[[slice, slice, Tensor], None], some: slice, others: slice, block: Tensor) -> None:
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
