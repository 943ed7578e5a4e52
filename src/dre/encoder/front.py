"""The first part of a network, computed from the rows and not trained: principal components, of values or of patches."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dre.encoder.patches import Patches
from dre.rows import Rows

SAMPLE_ROWS, SAMPLE_VALUES = 10_000, 2**25  # what the axes are found from
SAMPLE_PER_AXIS = 4  # rows at least, however wide they are: fewer rows than axes leave some without a direction
FAINT = 1e-10  # of the largest variance: along a weaker axis a sample shows rounding alone, and new rows would show anything
ROUNDS = 4  # each brings the axes nearer to the principal ones
SPARE = 16  # axes beyond those that are kept, which makes these settle sooner


class Front(nn.Module):
    """Rows to principal components, scaled so that their overall standard deviation is 1.

    A network behind it is small and quick, and sees nearly all that there is to see. With ``patches`` the components are those
    of what these answer to an image. All of it is found by ``settle``, once, from a sample of the rows; axes beyond the
    directions that the sample has are zero.
    """

    axes: Tensor
    middle: Tensor

    def __init__(self, shape: tuple[int, ...], components: int, patches: Patches | None = None) -> None:
        super().__init__()
        self.patches = nn.Flatten() if patches is None else patches
        values = self.patches(torch.zeros(1, *shape)).shape[1]
        self.register_buffer("axes", torch.zeros(min(components, values), values))
        self.register_buffer("middle", torch.zeros(len(self.axes)))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches
        along = patches.along(x, self.axes) if isinstance(patches, Patches) else patches(x) @ self.axes.T
        return along - self.middle

    @property
    def is_settled(self) -> bool:
        """Whether its axes were found. They are all zero until then, which survives any way of saving them."""
        return bool(self.axes.any())

    def settle(self, rows: Rows, generator: torch.Generator) -> None:
        widest = max(math.prod(rows.shape[1:]), self.axes.shape[1])
        n = max(SAMPLE_PER_AXIS * len(self.axes), min(SAMPLE_ROWS, SAMPLE_VALUES // widest))
        ids = torch.randperm(rows.shape[0], generator=generator, device=generator.device)[:n]
        sample = rows.take(ids.sort().values)
        if isinstance(self.patches, Patches):
            self.patches.settle(sample)
        values = self.patches(sample)
        mean = values.mean(0)
        axes, variance = principal(values - mean, len(self.axes), generator)
        unit = float(variance.mean().sqrt())
        self.axes.copy_((axes / (unit or 1.0)).where(variance[:, None] > FAINT * variance[0], 0))
        self.middle.copy_(self.axes @ mean)


def principal(x: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The first principal axes (count, d) of centred rows, and the variances along them, by subspace iteration."""
    wide = min(x.shape[1], count + SPARE)
    basis = torch.randn(x.shape[1], wide, generator=generator, device=generator.device)
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(x.T @ (x @ basis)).Q
    along = x @ basis
    turn = torch.linalg.eigh(along.T @ along / len(x)).eigenvectors.flip(1)[:, :count]
    variance = (along @ turn).square().mean(0)  # exact where it is small: an eigenvalue has the rounding of the largest
    axes = (basis @ turn).T
    return axes * axes.sum(1, keepdim=True).sign().where(axes.sum(1, keepdim=True) != 0, 1), variance
