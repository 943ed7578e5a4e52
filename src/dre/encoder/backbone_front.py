"""The front that a backbone makes: pixels as it expects them, its features, and their principal components."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from dre.encoder.module_error import naming_module
from dre.encoder.pca_front import PCAFront

WHITES = (1.0, 255.0, 65535.0)  # values of white: of fractions, and of images of 8 and 16 bits
DARK = 1 / 12  # of white: where the mean image has no brighter pixel, white is probably another
MOST_NORMALIZED = 10.0  # no mean of normalized pixels, of which some are negative, is as many standard deviations
WHITE_MARGIN = 1.05  # above 1 times white no mean of pixels lies, but for rounding and odd files
MOST_VALUES = 2**26  # of one image that the module reads: three channels of 4096 × 4096 pixels
CHECK = "Check its first layer, its mean and std, and size, the pixels that it was trained with."
SAME = 1e-6  # of the largest feature: features that differ by less are those of the same image
PART_ROWS = 8192  # of features that are checked at a time
PIECE_VALUES = 2**21  # of the images that go through the module at a time without gradients: hidden layers are far wider


class BackboneFeatures(nn.Module):
    """From scaled images to the features of a module, which reads pixels from 0 to 1, or normalized ones.

    The module is always in eval mode: its batch norms keep the statistics that they were trained with, and its dropouts let
    everything through. Its weights are trained only while it is not ``frozen``.

    Parameters
    ----------
    module : nn.Module
        Copied. From images (b, c, h, w) to features (b, f), or to maps of features (b, f, h, w), of which the mean is taken.
    shape : tuple of int
        Channels, height and width of the images.
    mean, std : tuple of float, optional
        Of each channel of the pixels, which are subtracted and divided by.
    size : tuple of int, optional
        Height and width to which the images are resized.
    white : float, optional
        The value of white in the images; None finds it when it learns how they were scaled.
    """

    offset: Tensor
    scale: Tensor
    white: Tensor
    mean: Tensor
    std: Tensor

    def __init__(
        self,
        module: nn.Module,
        shape: tuple[int, ...],
        *,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
        size: tuple[int, int] | None = None,
        white: float | None = None,
    ) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).float().eval()
        self._learns = [name for name, weight in self.module.named_parameters() if weight.requires_grad]
        self._shape, self._size, self._finds_white = shape, size, white is None
        self._normalizes = mean is not None or std is not None
        self._channels = _channels_read(self.module, shape[0]) if mean is None else len(mean)
        if shape[0] not in (1, self._channels):
            raise ValueError(
                f"the images have {shape[0]} channels, the backbone {type(module).__name__} reads {self._channels}: "
                "convert the images, or change its first layer"
            )
        if std is not None and len(std) not in (1, self._channels):
            raise ValueError(
                f"std has {len(std)} numbers, the backbone {type(module).__name__} reads {self._channels} channels"
            )
        if self._values() > MOST_VALUES:
            raise ValueError(
                f"the backbone {type(module).__name__} would read images of {self._values():,} values, the limit is "
                f"{MOST_VALUES:,}: choose a smaller size"
            )
        self.register_buffer("offset", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("white", torch.tensor(1.0 if white is None else float(white)))
        self.register_buffer("mean", torch.tensor(mean or (0.0,)).reshape(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std or (1.0,)).reshape(-1, 1, 1))
        self.piecewise = True
        self.freeze()

    def undo_scaling(self, offset: Tensor, scale: float) -> None:
        """Learn how the rows were scaled: pixels are ``offset + scale * row``, with the mean image (c, h, w) as the offset."""
        self.offset.copy_(offset)
        self.scale.fill_(scale)
        if self._finds_white:
            darkest, brightest = float(offset.min()), float(offset.max())
            is_normalized = darkest < 0 and brightest < MOST_NORMALIZED
            white = next((white for white in WHITES if is_normalized or brightest <= WHITE_MARGIN * white), WHITES[-1])
            self.white.fill_(white)
            if darkest >= 0 and brightest < DARK * white:
                warnings.warn(
                    f"the images are dark if white is {white:g}: their mean is at most {brightest:g}. The backbone would read "
                    f"hardly more than black. Pass the value that white has in them, or white={white:g} if they are dark.",
                    stacklevel=2,
                )
        self._warn_of_statistics(offset / self.white)

    def _warn_of_statistics(self, pixels: Tensor) -> None:
        """Warn if mean and std can't be those of the mean image."""
        if not self._normalizes:
            return
        if float(self.mean.max()) > 1 and float(pixels.max()) <= WHITE_MARGIN:
            warnings.warn(
                f"the backbone reads pixels from 0 to 1, and mean={_numbers(self.mean)} is that of pixels to 255: divide mean "
                "and std by 255",
                stacklevel=3,
            )
        elif float(pixels.min()) < 0:
            warnings.warn(
                "the images have negative values, as after Normalize, and mean and std would normalize them again: leave out "
                "either Normalize, or mean and std",
                stacklevel=3,
            )

    def freeze(self) -> None:
        """Keep the weights of the module as they are."""
        self.frozen = True
        self.module.requires_grad_(False)

    def unfreeze(self) -> None:
        """Train the weights that required gradients when the module was passed."""
        self.frozen = False
        for name, weight in self.module.named_parameters():
            weight.requires_grad_(name in self._learns)

    def train(self, mode: bool = True) -> BackboneFeatures:
        """Change the mode, but not that of the module."""
        super().train(mode)
        self.module.eval()
        return self

    @property
    def device(self) -> torch.device:
        return self.offset.device

    def count(self) -> int:
        """The number of features. Two images are tried, to see that each gets its own."""
        shape = (self._channels, *(self._size or self._shape[1:]))
        with torch.no_grad(), naming_module("backbone", type(self.module).__name__, shape, CHECK):
            y = self(torch.zeros(2, *self._shape, device=self.device))
        if len(y) != 2:
            raise ValueError(
                f"the {self.described} returns {len(y)} row(s) of features for 2 images: it must return one for each"
            )
        return int(y.shape[1])

    @property
    def described(self) -> str:
        """Its name for messages."""
        return f"backbone {type(self.module).__name__}"

    def check(self, features: Tensor, name_image: Callable[[int], str]) -> None:
        """Raise a ValueError that names the first image without finite features; warn if all images have the same."""
        parts = features.split(PART_ROWS)
        is_lost = torch.cat([~part.isfinite().all(1) for part in parts])
        if bool(is_lost.any()):
            first = int(is_lost.long().argmax())
            kind = "NaN" if bool(features[first].isnan().any()) else "infinity"
            raise ValueError(
                f"the {self.described} returns {kind} for {int(is_lost.sum()):,} of {len(features):,} images, the first in "
                f"{name_image(first)}. Check its weights, white, mean and std; a network of float16 overflows easily."
            )
        spread = max(float((part - features[:1]).abs().max()) for part in parts)
        if len(features) > 1 and spread <= SAME * float(features[:1].abs().max()):
            warnings.warn(
                f"the {self.described} returns the same features for all images, so that the map shows nothing of them. "
                "Check its weights, white, mean and std.",
                stacklevel=2,
            )

    def forward(self, x: Tensor) -> Tensor:
        if not self.piecewise or torch.is_grad_enabled():
            return self._features(x)
        parts = x.split(max(1, PIECE_VALUES // max(1, self._values())))
        return self._features(x) if len(parts) == 1 else torch.cat([self._features(part) for part in parts])

    def _values(self) -> int:
        height, width = self._size or self._shape[1:]
        return self._channels * height * width

    def _features(self, x: Tensor) -> Tensor:
        x = (x * self.scale + self.offset) / self.white
        if x.shape[1] < self._channels:
            x = x.expand(-1, self._channels, -1, -1)
        if self._size is not None and self._size != self._shape[1:]:
            shrinks = self._size[0] < self._shape[1] or self._size[1] < self._shape[2]
            x = interpolate(x, size=self._size, mode="bilinear", antialias=shrinks)
        return pooled(self.module((x - self.mean) / self.std), self.module)


class BackboneFront(nn.Module):
    """Principal components of the features of a backbone, divided by one number so that their overall standard deviation is 1.

    Parameters
    ----------
    backbone : BackboneFeatures
    n_pcs : int
        Number of components; at most the number of features.

    Examples
    --------
    >>> front = BackboneFront(BackboneFeatures(nn.Conv2d(3, 16, 3), (3, 8, 8)), 10)
    >>> front(torch.zeros(5, 3, 8, 8)).shape
    torch.Size([5, 10])
    """

    def __init__(self, backbone: BackboneFeatures, n_pcs: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.pca = PCAFront((backbone.count(),), n_pcs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pca(self.backbone(x))
        return y

    @property
    def is_fitted(self) -> bool:
        """Whether the components were computed."""
        return self.pca.is_fitted


def pooled(y: object, module: nn.Module) -> Tensor:
    """Return features (b, f); of maps of features the mean over the image. Raise a TypeError for anything else."""
    if isinstance(y, Tensor) and y.ndim == 4:
        return y.mean((2, 3))
    if isinstance(y, Tensor) and y.ndim == 2:
        return y
    given = f"a tensor of the shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
    raise TypeError(
        f"the backbone {type(module).__name__} must return features (images, f), or (images, f, height, width), not {given}: "
        "wrap it in a module that returns one of its outputs"
    )


def _numbers(x: Tensor) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in x.flatten())


def _channels_read(module: nn.Module, default: int) -> int:
    """The channels that the first convolution of a module reads."""
    first = next((part for part in module.modules() if isinstance(part, nn.Conv2d)), None)
    return default if first is None else first.in_channels
