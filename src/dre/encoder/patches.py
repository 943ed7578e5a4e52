"""Images by what their parts look like: filters that are computed from the images, not trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, unfold

VALUES = 2**24  # of patches that are looked at
CACHED = 2**20  # answers that a CPU works on at once: with more it waits for its memory
FAINT = 1e-6  # of the strongest filter's answers: weaker ones are rounding, which must not be made as strong


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
        return torch.cat([self._described(piece) for piece in x.split(self.at_once(x))])

    def along(self, x: Tensor, axes: Tensor) -> Tensor:
        """``self(x) @ axes.T``, without answers and pixels ever lying side by side."""
        pieces = []
        for piece in x.split(self.at_once(x)):
            answers = self._answers(piece)
            pieces.append(answers @ axes[:, : answers.shape[1]].T)
            if self.pixels:
                pieces[-1] += piece.flatten(1) @ (axes[:, answers.shape[1] :] * self.share).T
        return torch.cat(pieces)

    def at_once(self, x: Tensor) -> int:
        """Images: as many answers as a CPU's cache holds; a GPU has room for more."""
        answers = self.filters.shape[0] * x.shape[2] * x.shape[3]
        return max(1, (CACHED if x.device.type == "cpu" else 2**6 * CACHED) // answers)

    def _described(self, x: Tensor) -> Tensor:
        return torch.cat([self._answers(x), x.flatten(1) * self.share], 1) if self.pixels else self._answers(x)

    def _answers(self, x: Tensor) -> Tensor:
        answers = conv2d(x, self.filters, padding=self.filters.shape[2] // 2).abs_()
        return avg_pool2d(answers, self.part, ceil_mode=True).flatten(1)

    def settle(self, images: Tensor) -> None:
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
        filters = (axes / strength.sqrt()).where(strength > FAINT * strength[0], 0)
        self.filters.copy_(filters.T.reshape(count, channels, side, side))
        if self.pixels:
            answers = torch.cat([self._answers(piece) for piece in images.split(self.at_once(images))])
            spread = float(answers.var(0).sum() / images.flatten(1).var(0).sum().clamp_min(1e-30))
            self.share.fill_((self.pixels * spread) ** 0.5)
