"""Sums over all pairs in two dimensions, interpolated on a grid and convolved by FFT: O(n), as FIt-SNE does."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.loss.curves import Student
from dre.runtime import has_numba
from dre.runtime.float64 import near_float64

SPACING = 0.5  # of the nodes; the similarity of two rows changes over a distance of 1
MARGIN = 2  # nodes around the map, which the interpolation reaches
AROUND = 2 * MARGIN + 2
LENGTHS: list[int] = sorted(odd * 2**power for odd in (1, 3, 5, 9, 15) for power in range(11) if 48 <= odd * 2**power <= 1536)


def sum_on_grid(y: Tensor, curve: Student) -> tuple[Tensor, Tensor]:
    """Return Σ value over i ≠ j, and Σj slope (yi - yj) of every row of y (n, 2)."""
    reach = float(y.abs().max()) * 1.001 + 1e-6
    nodes = _quick_length(2 * reach / SPACING + AROUND)
    h = 2 * reach / (nodes - AROUND)
    grid = _Grid(y, -reach - MARGIN * h, h, nodes)
    value, slope = _spectra(nodes, h, curve, y.device)
    mass = grid.spread()  # Σ 1, Σ x and Σ y around each node
    size = 2 * nodes
    spectrum = torch.fft.rfft2(mass, s=(size, size))
    spectrum = torch.cat([spectrum[:1] * value, spectrum * slope])
    field = torch.fft.irfft2(spectrum, s=(size, size))[:, :nodes, :nodes].contiguous()
    total, of_slope, of_x, of_y = grid.gather(field)
    pull = y * of_slope[:, None] - torch.stack([of_x, of_y], 1)
    total = near_float64(total).sum(dtype=torch.double).float().to(y.device)
    return total - len(y), pull  # a row meets itself with the value 1, and no force


def _quick_length(nodes: float) -> int:
    """Return a number of nodes that is not much larger, and whose transforms are quick.

    There are few of them, since a GPU compiles the transforms of each length when it meets the first of it.
    """
    return next((length for length in LENGTHS if length >= nodes), LENGTHS[-1])


def _spectra(nodes: int, h: float, curve: Student, device: torch.device) -> tuple[Tensor, Tensor]:
    """The curve's values and slopes as functions of the offset between two nodes, transformed."""
    r = torch.arange(2 * nodes, device=device)
    r = torch.minimum(r, 2 * nodes - r) * h
    squared = r.square()[:, None] + r.square()
    value, slope = curve(squared)
    return torch.fft.rfft2(value), torch.fft.rfft2(slope)


class _Grid:
    """Cubic interpolation between rows and the 4 × 4 nodes around each."""

    def __init__(self, y: Tensor, low: float, h: float, nodes: int) -> None:
        self.y, self.low, self.h, self.nodes = y.contiguous(), low, h, nodes
        self._compiled = y.device.type == "cpu" and y.dtype == torch.float32 and has_numba()
        if not self._compiled:
            at = (y - low) / h
            base = at.floor()
            weights = _cubic(at - base)  # (n, 2, 4)
            around = torch.arange(-1, 3, device=y.device)
            near = base.long()[:, :, None] + around
            self._at = (near[:, 0, :, None] * nodes + near[:, 1, None, :]).flatten(1)  # (n, 16)
            self._weight = (weights[:, 0, :, None] * weights[:, 1, None, :]).flatten(1)

    def spread(self) -> Tensor:
        mass = torch.zeros(3, self.nodes, self.nodes, dtype=self.y.dtype, device=self.y.device)
        if self._compiled:
            from dre.loss.numba import grid_sums as kernels

            kernels.spread(self.y.numpy(), self.low, self.h, mass.numpy())
            return mass
        flat = mass.view(3, -1)
        for row, factor in zip(flat, (None, self.y[:, :1], self.y[:, 1:]), strict=True):
            weight = self._weight if factor is None else self._weight * factor
            row.index_add_(0, self._at.ravel(), weight.ravel())
        return mass

    def gather(self, field: Tensor) -> Tensor:
        if self._compiled:
            from dre.loss.numba import grid_sums as kernels

            out = torch.empty(len(field), len(self.y))
            kernels.gather(self.y.numpy(), self.low, self.h, field.numpy(), out.numpy())
            return out
        flat = field.view(len(field), -1)
        return torch.stack([(row[self._at] * self._weight).sum(1) for row in flat])


def _cubic(u: Tensor) -> Tensor:
    """Lagrange weights of the nodes -1, 0, 1 and 2 at 0 ≤ u < 1."""
    weights = (
        -u * (u - 1) * (u - 2) / 6,
        (u + 1) * (u - 1) * (u - 2) / 2,
        -(u + 1) * u * (u - 2) / 2,
        (u + 1) * u * (u - 1) / 6,
    )
    return torch.stack(weights, -1)
