"""A first layer that is computed, not trained: the principal components of the data."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dre.forward import chunk_rows
from dre.rows import Rows

PASSES = 4  # over the rows; each brings the axes nearer to the principal ones
SPARE = 16  # axes beyond those that are kept, which makes these settle sooner


class Front(nn.Module):
    """Rows, flattened, to their first ``components`` principal components, at the rows' own scale.

    A network behind it is small and quick, and sees nearly all that there is to see. Its axes are found by ``settle``, once,
    from rows that are centred; after that it never changes.
    """

    axes: Tensor

    def __init__(self, values: int, components: int) -> None:
        super().__init__()
        self.register_buffer("axes", torch.zeros(min(components, values), values))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.axes.T

    def settle(self, rows: Rows, generator: torch.Generator) -> None:
        """Find the principal axes, by subspace iteration: rows are read a few times over, chunk by chunk."""
        kept, values = self.axes.shape
        wide = min(values, kept + SPARE)
        basis = torch.randn(values, wide, generator=generator, device=generator.device)
        for _ in range(PASSES):
            basis = torch.linalg.qr(self._through(rows, basis)).Q
        # Inside the subspace that is left, the axes themselves, the longest first; their signs so that each sum is positive.
        within = basis.T @ self._through(rows, basis)
        turned = basis @ torch.linalg.eigh((within + within.T) / 2).eigenvectors.flip(1)[:, :kept]
        self.axes.copy_((turned * turned.sum(0).sign().where(turned.sum(0) != 0, 1)).T)

    @staticmethod
    def _through(rows: Rows, basis: Tensor) -> Tensor:
        """XᵀX · basis, over the number of rows."""
        n, step = rows.shape[0], chunk_rows(rows.shape[1:])
        total = torch.zeros_like(basis)
        for start in range(0, n, step):
            x = rows.read(start, min(n, start + step)).flatten(1)
            total += x.T @ (x @ basis)
        return total / n


def settle(encoder: nn.Module, rows: Rows, generator: torch.Generator) -> None:
    """Compute what in a network is computed from the rows before it is trained."""
    with torch.no_grad():
        for module in encoder.modules():
            if isinstance(module, Front):
                module.settle(rows, generator)
