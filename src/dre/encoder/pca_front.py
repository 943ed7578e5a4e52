"""The first part of a network, computed from the rows and not trained: principal components, of values or of patches."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, unfold

from dre.data.rows import Rows

VALUES = 2**24  # of patches that are looked at
CACHED = 2**20  # answers that a CPU works on at once: with more it waits for its memory
FAINT_FILTER = 1e-6  # of the strongest filter's answers: weaker ones are rounding, which must not be made as strong


class Patches(nn.Module):
    """How strongly each of some filters answers in each part of an image, whatever the sign.

    The filters are the principal components of small patches, made equally strong. To which exact pixels they answer within a
    part is averaged away, so that an image moved by a pixel is still nearly the same. With ``pixels`` these follow the answers,
    scaled so that they vary as much in all, times this.
    """

    filters: Tensor
    share: Tensor

    def __init__(self, channels: int, count: int, *, side: int = 5, part: int = 4, pixels: float = 0.0) -> None:
        super().__init__()
        self.part, self.pixels = part, pixels
        self.register_buffer("share", torch.ones(()))
        self.register_buffer("filters", torch.zeros(min(count, channels * side * side - 1), channels, side, side))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self._describe(piece) for piece in x.split(self.images_per_piece(x))])

    def along(self, x: Tensor, axes: Tensor) -> Tensor:
        """``self(x) @ axes.T``, without answers and pixels ever lying side by side."""
        pieces = []
        for piece in x.split(self.images_per_piece(x)):
            answers = self._responses(piece)
            pieces.append(answers @ axes[:, : answers.shape[1]].T)
            if self.pixels:
                pieces[-1] += piece.flatten(1) @ (axes[:, answers.shape[1] :] * self.share).T
        return torch.cat(pieces)

    def images_per_piece(self, x: Tensor) -> int:
        """Images: as many answers as a CPU's cache holds; a GPU has room for more."""
        answers = self.filters.shape[0] * x.shape[2] * x.shape[3]
        return max(1, (CACHED if x.device.type == "cpu" else 2**6 * CACHED) // answers)

    def _describe(self, x: Tensor) -> Tensor:
        return torch.cat([self._responses(x), x.flatten(1) * self.share], 1) if self.pixels else self._responses(x)

    def _responses(self, x: Tensor) -> Tensor:
        answers = conv2d(x, self.filters, padding=self.filters.shape[2] // 2).abs_()
        return avg_pool2d(answers, self.part, ceil_mode=True).flatten(1)

    def fit(self, images: Tensor) -> None:
        """Find the filters for these images (n, c, h, w)."""
        count, channels, side, _ = self.filters.shape
        wanted = min(len(images), max(1, VALUES // (images[0].numel() * side * side)))
        some = images[
            torch.linspace(0, len(images) - 1, wanted).long()
        ]  # from end to end: they may be sorted by what they show
        patches = unfold(some, side, padding=side // 2).movedim(1, 2).flatten(0, 1)
        patches = patches - patches.mean(1, keepdim=True)  # what a patch looks like, not how bright it is
        strength, axes = torch.linalg.eigh(patches.T @ patches / len(patches))
        strength, axes = strength.flip(0)[:count], axes.flip(1)[:, :count]
        filters = (axes / strength.sqrt()).where(strength > FAINT_FILTER * strength[0], 0)
        self.filters.copy_(filters.T.reshape(count, channels, side, side))
        if self.pixels:
            answers = torch.cat([self._responses(piece) for piece in images.split(self.images_per_piece(images))])
            spread = float(answers.var(0).sum() / images.flatten(1).var(0).sum().clamp_min(1e-30))
            self.share.fill_((self.pixels * spread) ** 0.5)


SAMPLE_ROWS, SAMPLE_VALUES = 10_000, 2**25  # what the axes are found from
SAMPLE_PER_AXIS = 4  # rows at least, however wide they are: fewer rows than axes leave some without a direction
FAINT_AXIS = 1e-10  # of the largest variance: weaker axes of a sample are rounding, and new rows would show anything
ROUNDS = 4  # each brings the axes nearer to the principal ones
SPARE = 16  # axes beyond those that are kept, which makes these fit sooner


class Front(nn.Module):
    """Rows to principal components, scaled so that their overall standard deviation is 1.

    A network behind it is small and quick, and sees nearly all that there is to see. With ``patches`` the components are those
    of what these answer to an image. All of it is found by ``fit``, once, from a sample of the rows; axes beyond the
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
    def is_fitted(self) -> bool:
        """Whether its axes were found. They are all zero until then, which survives any way of saving them."""
        return bool(self.axes.any())

    def fit(self, rows: Rows, generator: torch.Generator) -> None:
        widest = max(math.prod(rows.shape[1:]), self.axes.shape[1])
        n = max(SAMPLE_PER_AXIS * len(self.axes), min(SAMPLE_ROWS, SAMPLE_VALUES // widest))
        ids = torch.randperm(rows.shape[0], generator=generator, device=generator.device)[:n]
        sample = rows.take(ids.sort().values)
        if isinstance(self.patches, Patches):
            self.patches.fit(sample)
        values = self.patches(sample)
        mean = values.mean(0)
        axes, variance = principal(values - mean, len(self.axes), generator)
        unit = float(variance.mean().sqrt())
        self.axes.copy_((axes / (unit or 1.0)).where(variance[:, None] > FAINT_AXIS * variance[0], 0))
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
