"""Squared distances between rows, in blocks by matrix products, and directly where the rounding of a product matters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Protocol

import torch
from torch import Tensor

from dre.runtime import full_float32, has_numba, tf32_products, triton_applies
from dre.runtime.gpu_memory import piece

BLOCK = {"cuda": 8192, "cpu": 1600}  # rows on a side of a block: half a GiB of float64 on a GPU; what a CPU's cache holds
ELEMENTS = {"cuda": 2**27, "cpu": 2**18}  # values of rows processed at once: far slower on a CPU once they exceed its cache
TIE = 1e-12  # relative difference below which squared distances count as equal: machines round differently by less
DUPLICATE = 1e-13  # part of the squared norms that a product leaves over for two equal rows
FLOAT32_TOLERANCE = 5e-4  # float32 is used if it rounds by less than this part of the distance to the nearest neighbors
TF32_TOLERANCE = 2e-2  # larger for TF32, because a search verifies all of its candidates
ALIGNMENT = 8  # columns: tensor cores need a multiple of it
SAFE_RANGE = (2.0**-40, 2.0**50)  # largest absolute value of rows for which float32 can hold the squared distances
SAMPLE = 32  # rows on which the rounding is measured
TINY = torch.finfo(torch.double).tiny


class PairDistances(Protocol):
    """Squared distances among the rows of one array, of any metric, as searches and scores read them.

    ``Distances`` documents the members. ``has_tree`` says whether a k-d tree of ``rows`` knows the same distances.
    """

    n: int
    dim: int
    device: torch.device
    dtype: torch.dtype
    unit: float
    rows: Tensor
    has_tree: bool

    @property
    def norms(self) -> Tensor: ...

    @property
    def is_tf32(self) -> bool: ...

    def tiles(self) -> list[slice]: ...

    def upper_blocks(self) -> Iterator[tuple[slice, slice]]: ...

    def rounds(self) -> list[list[tuple[slice, slice]]]: ...

    def block(self, rows: slice, columns: slice) -> Tensor: ...

    def from_points(self, points: Tensor, columns: slice | None = None) -> Tensor: ...

    def radius(self, points: Tensor) -> Tensor: ...

    def margin(self, radius: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor: ...

    def direct(self, points: Tensor, ids: Tensor) -> Tensor: ...

    def direct_pairs(self, heads: Tensor, tails: Tensor) -> Tensor: ...


class Distances:
    """Squared Euclidean distances among the rows of one array.

    A block of distances is one matrix product. ``margin`` bounds its rounding error, and ``direct`` computes single distances
    from the differences, for the pairs that the margin leaves undecided.

    Parameters
    ----------
    rows : Tensor of shape (n, d)
    dtype : torch.dtype, optional
        Precision of the products, float32 or float64. Products in float32 cost half, but lose close pairs far from the origin.
        By default float32 is used where the nearest neighbors are clearly farther apart than its rounding.
    tf32 : bool, default=False
        Allow products of TF32 (ten bits) where they are precise enough for a search that verifies its candidates. They are many
        times as fast on a GPU.

    Attributes
    ----------
    rows : Tensor of shape (n, d)
        The rows, divided by ``unit``.
    unit : float
        1, unless the squares would overflow or underflow float32. Multiply distances by it.
    norms : Tensor of shape (n,)
        Squared norms of the centered rows, in float64.

    Examples
    --------
    >>> distances = Distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    >>> distances.direct_pairs(torch.tensor([0]), torch.tensor([1]))
    tensor([25.], dtype=torch.float64)
    """

    def __init__(self, rows: Tensor, dtype: torch.dtype | None = None, *, tf32: bool = False) -> None:
        self.n, self.dim = rows.shape
        self.device, self.has_tree = rows.device, True
        least, most = rows.aminmax(dim=0)
        self.unit = _safe_unit(float(torch.maximum(-least.double(), most.double()).max()))
        rows = rows if rows.dtype == torch.float32 else rows.double()
        self.rows = rows if self.unit == 1 else rows / self.unit
        constant = least == most  # constant columns, as the margins of images, add nothing to a product and are left out
        self._varying = (~constant).nonzero().ravel()
        mean = self.rows.mean(0, dtype=torch.double)
        self._center = torch.where(constant, self.rows[0].double(), mean)  # products of centered rows round least
        self.norms = torch.empty(self.n, dtype=torch.double, device=self.device)
        self._select_precision(dtype, tf32=tf32)

    @property
    def is_tf32(self) -> bool:
        """Whether the products are in TF32."""
        return self._tf32

    def tiles(self) -> list[slice]:
        """Split the rows into slices of equal size, a multiple of 8; two of them make a block."""
        return equal_slices(self.n, max(8, piece(BLOCK.get(self.device.type, BLOCK["cpu"]), shrink=2)))

    def upper_blocks(self) -> Iterator[tuple[slice, slice]]:
        """The blocks on and above the diagonal; the others are their transposes."""
        return combinations_with_replacement(self.tiles(), 2)

    def rounds(self) -> list[list[tuple[slice, slice]]]:
        """The same blocks in rounds; those of a round have no rows in common, so that threads can share them.

        >>> [len(blocks) for blocks in Distances(torch.rand(4000, 1)).rounds()]
        [2, 2, 2]
        """
        return rounds_of(self.tiles())

    def block(self, rows: slice, columns: slice) -> Tensor:
        """Squared distances (rows, columns) up to their margin; infinite on the diagonal, so no row is its own neighbor."""
        squared = self._product(self._left_factors(self._factors[rows]), self._factors[columns])
        if rows == columns:
            squared.fill_diagonal_(torch.inf)
        return squared

    def from_points(self, points: Tensor, columns: slice | None = None) -> Tensor:
        """Squared distances (m, columns) in float64 from points (m, d) to a slice of the rows, by default to all."""
        points = points.double() - self._center
        norms = points.square().sum(1)
        parts = [
            torch.addmm(norms[:, None] + self.norms[part], points, self._centered(part).T, alpha=-2)
            for part in (self.tiles() if columns is None else [columns])
        ]
        return torch.cat(parts, dim=1)

    def radius(self, points: Tensor) -> Tensor:
        """Distances (m,) of points (m, d) from the center of the rows; for a row, the square root of its norm."""
        return (points.double() - self._center).square_().sum(1).sqrt_()

    def margin(self, radius: Tensor, squared: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Bound on the rounding error of products.

        Parameters
        ----------
        radius : Tensor of shape (m,)
            Distances of the points from the center, as ``radius`` returns them.
        squared : Tensor of shape (m, ...)
            Approximate squared distances from these points.
        dtype : torch.dtype, optional
            Precision of the products; default: that of ``block``.

        Returns
        -------
        Tensor of the shape of ``squared``
        """
        dtype = dtype or self.dtype
        # In units of eps · (|a| + |b|)². In float64 no order of summation exceeds it; in float32 it was measured.
        rounding = self.dim / 4 + 4 if dtype == torch.double else self._rounding
        radius = radius.reshape(-1, *[1] * (squared.ndim - 1))
        bound: Tensor = rounding * torch.finfo(dtype).eps * (2 * radius + squared.sqrt()).square()
        return bound

    def direct(self, points: Tensor, ids: Tensor) -> Tensor:
        """Squared distances (m, k) from points (m, d) to the rows ``ids`` (m, k), summed over the differences in float64."""
        if triton_applies(points):
            from dre.neighbors.triton.direct import direct

            return direct(points, self.rows, ids)
        if self.device.type == "cpu" and has_numba():
            from dre.neighbors.numba import direct as kernels

            return kernels.direct(points, self.rows, ids)
        step = max(1, self._elements() // max(1, ids.shape[1] * self.dim))
        parts = [
            (part.double()[:, None, :] - self.rows[near].double()).square_().sum(2)
            for part, near in zip(points.split(step), ids.split(step), strict=True)
        ]
        return torch.cat(parts)

    def direct_pairs(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Squared distances (m,) between the rows ``heads`` (m,) and ``tails`` (m,), summed over the differences in float64."""
        step = max(1, self._elements() // self.dim)
        parts = [
            (self.rows[a].double() - self.rows[b].double()).square_().sum(1)
            for a, b in zip(heads.split(step), tails.split(step), strict=True)
        ]
        return torch.cat(parts)

    def _elements(self) -> int:
        return piece(ELEMENTS.get(self.device.type, ELEMENTS["cpu"]))

    def _centered(self, part: slice) -> Tensor:
        return self.rows[part].double() - self._center

    def _select_precision(self, dtype: torch.dtype | None, *, tf32: bool) -> None:
        """Use the fastest products that are precise enough."""
        if dtype == torch.double:
            self._set_precision(torch.double)
            return
        if tf32:
            self._set_precision(torch.float32, tf32=True)
            if self._is_precise(TF32_TOLERANCE):
                return
        self._set_precision(torch.float32)
        if not self._is_precise(FLOAT32_TOLERANCE) and dtype is None:
            self._set_precision(torch.double)

    def _set_precision(self, dtype: torch.dtype, *, tf32: bool = False) -> None:
        self.dtype, self._tf32, self._tf32_loss = dtype, tf32, 0.0
        self._factors = self._right_factors()

    def _right_factors(self) -> Tensor:
        """The right factors (b, 1, |b|²) of all rows b, centered; fills ``norms``.

        In TF32 a norm takes two columns: its ten leading bits and the rest.
        """
        varying = len(self._varying)
        parts = 2 if self._tf32 else 1
        width = varying + 2 * parts
        width += -width % ALIGNMENT if self.device.type == "cuda" else 0
        factors = torch.zeros(self.n, width, dtype=self.dtype, device=self.device)
        factors[:, -2 * parts : -parts] = 1
        step = max(1, self._elements() // self.dim)
        for start in range(0, self.n, step):
            part = slice(start, start + step)
            centered = self._centered(part)
            factors[part, :varying] = (centered if varying == self.dim else centered[:, self._varying]).to(self.dtype)
            self.norms[part] = centered.square_().sum(1)
            factors[part, -parts] = self.norms[part].to(self.dtype)
            if self._tf32:
                exact = factors[part, :varying].clone()
                _round_to_tf32_(factors[part])
                lost = (factors[part, :varying] - exact).norm(dim=1).double() / self.norms[part].sqrt().clamp_min(TINY)
                self._tf32_loss = max(self._tf32_loss, float(lost.max()))
                factors[part, -1] = (self.norms[part] - factors[part, -2]).float()
                _round_to_tf32_(factors[part, -1:])
        return factors

    def _left_factors(self, factors: Tensor) -> Tensor:
        """(-2a, |a|², 1) from (a, 1, |a|²): its product with (b, 1, |b|²) is |a - b|²."""
        parts = 2 if self._tf32 else 1
        left = -2 * factors
        left[:, -2 * parts : -parts], left[:, -parts:] = factors[:, -parts:], 1
        return left

    def _product(self, left: Tensor, right: Tensor) -> Tensor:
        with tf32_products() if self._tf32 else full_float32():
            return left @ right.T

    def _is_precise(self, tolerance: float) -> bool:
        """Measure the rounding of the products, and compare it with the distances to the nearest neighbors of a sample."""
        tile = self.tiles()[0]
        sample = self._sample_ids(tile.stop)
        true = self.from_points(self.rows[sample], tile).clamp_min_(0)
        self._rounding = 1.0
        unit = self.margin(self.norms[sample].sqrt(), true).clamp_min(TINY)
        # Of a whole block: the product of a few rows may use another algorithm.
        error = self.block(tile, tile)[sample].double() - true
        measured = float((error.abs_() / unit).masked_fill_(error.isinf(), 0).max())
        # Independent errors add up like a random walk; those of equal columns all have one sign and add up to more.
        walk = max(8.0, (self.dim + 2) ** 0.5)
        # The rounding of two rows to TF32 can all lie along their product, whatever the sample shows.
        lost = self._tf32_loss / torch.finfo(torch.float32).eps
        self._rounding = max(measured, lost) + walk if self._tf32 else max(walk, 4 * measured)
        sample = self._sample_ids(self.n)
        near = self._product(self._left_factors(self._factors[sample]), self._factors).double().clamp_min_(0)
        near = near.topk(min(self.n, 6), largest=False).values[:, -1]
        return bool((self.margin(self.norms[sample].sqrt(), near) <= tolerance * near).double().mean() >= 0.5)

    def _sample_ids(self, n: int) -> Tensor:
        """Evenly spaced ids among the first n rows."""
        return torch.linspace(0, n - 1, min(SAMPLE, n), device=self.device).long()


def _round_to_tf32_(x: Tensor) -> None:
    """Round float32 to ten bits, in place; tensor cores would truncate, always toward zero."""
    x.copy_(((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32))


def _safe_unit(largest: float) -> float:
    """A power of two by which rows with this largest absolute value are divided without rounding."""
    if largest == 0 or SAFE_RANGE[0] <= largest <= SAFE_RANGE[1]:
        return 1.0
    return float(2.0 ** math.floor(math.log2(largest)))


def equal_slices(n: int, limit: int) -> list[slice]:
    """Split n rows into slices of equal size, a multiple of 8 and at most the next one above the limit."""
    size = -(-n // -(-n // limit))
    size += -size % 8
    return [slice(start, min(n, start + size)) for start in range(0, n, size)]


def rounds_of(tiles: list[slice]) -> list[list[tuple[slice, slice]]]:
    """Arrange the blocks on and above the diagonal in rounds, in each of which no two have rows in common."""
    pairs = list(combinations_with_replacement(range(len(tiles)), 2))
    return [[(tiles[i], tiles[j]) for i, j in pairs if (i + j) % len(tiles) == turn] for turn in range(len(tiles))]


def with_transpose(update: Callable[[slice, slice, Tensor], None], rows: slice, columns: slice, block: Tensor) -> None:
    """Call ``update`` with a block, and with its transpose unless the block lies on the diagonal."""
    update(rows, columns, block)
    if rows != columns:
        update(columns, rows, block.T)


def pairwise_distances(a: Tensor, b: Tensor) -> Tensor:
    """Euclidean distances between all rows of two arrays.

    Parameters
    ----------
    a : Tensor of shape (n, d)
    b : Tensor of shape (m, d)

    Returns
    -------
    Tensor of shape (n, m)
        In float64, by a matrix product: in float32 it would lose close pairs. Equal rows have the distance 0.

    Examples
    --------
    >>> pairwise_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]], dtype=torch.float64)
    """
    center = b.double().mean(0)
    a, b = a.double() - center, b.double() - center
    norms = a.square().sum(1)[:, None] + b.square().sum(1)[None, :]
    squared = norms - 2 * (a @ b.T)
    return squared.masked_fill_(squared <= DUPLICATE * norms, 0.0).sqrt_()
