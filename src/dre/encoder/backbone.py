"""A pretrained network, or one of your own, as the first part of the encoder."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real

from torch import nn

from dre.encoder import ENCODERS, Encoder, check_image, check_positive_ints
from dre.encoder.backbone_front import BackboneFeatures, BackboneFront
from dre.encoder.mlp import MLP
from dre.encoder.network import Network
from dre.notation import write_value

OPTIONS = ("mean", "std", "size", "white")  # which are None by default
MODULE = "a network, such as torchvision.models.resnet18(weights='DEFAULT')"
MOST_PIXELS = 4096  # a side, to which images are resized


@dataclass(frozen=True)
class Backbone(Encoder):
    """The features of a module, their principal components (``features``), then an ``mlp``.

    The backbone is frozen: its features are computed once for each row, and only the mlp is trained. A stage of the schedule
    that ends in ``unfreeze`` trains its weights too. It stays in eval mode all the time, so that batch norms keep the
    statistics that they were trained with. Parameters of the module that do not require gradients stay as they are.

    The module reads pixels from 0 to 1, whatever the values of the images, normalized by ``mean`` and ``std`` if these are
    given. Gray images get as many channels as its first convolution reads.

    Parameters
    ----------
    module : nn.Module
        From images (b, channels, height, width) to features (b, f), or to maps of features (b, f, h, w), of which the mean over
        the image is taken. A network that classifies is passed without its last layer. It is copied, not changed.
    head : MLP or str, optional
        What is trained: ``"mlp(256, depth=3)"``. By default that of the recipe, which depends on the number of rows.
    n_pcs : int, default=100
        Principal components of the features, which the head reads and among which neighbors are searched.
    mean, std : tuple of float, optional
        Of each channel, from 0 to 1, by which pixels are normalized.
    size : int or (height, width), optional
        Pixels to which images are resized for the module, at most 4096 a side; by default they keep their size.
    white : float, optional
        The value of white in the images. By default 1, 255 or 65535, the least that the mean image does not exceed.

    Examples
    --------
    >>> cnn = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
    >>> print(Backbone(cnn, "mlp(64)"))
    backbone(Sequential, mlp(64), n_pcs=100)
    """

    module: nn.Module
    head: MLP | str | None = None
    _: KW_ONLY
    n_pcs: int = 100
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    size: int | tuple[int, int] | None = None
    white: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            made = f"{self.module.__name__}()" if isinstance(self.module, type) else MODULE
            raise TypeError(f"module={self.module!r}: expected an nn.Module: pass {made}")
        head = ENCODERS.parse(self.head) if isinstance(self.head, str) else self.head
        if head is not None and (not isinstance(head, MLP) or head.n_pcs is not None):
            raise ValueError(
                f"head={head}: expected an mlp without n_pcs, such as 'mlp(256, depth=3)'; the backbone has its own"
            )
        object.__setattr__(self, "head", head)
        check_positive_ints(self, "n_pcs")
        if self.size is not None:
            check_positive_ints(self, "size")
            object.__setattr__(self, "size", tuple(self.size) if isinstance(self.size, tuple) else int(self.size))
            sides = self.size if isinstance(self.size, tuple) else (self.size, self.size)
            if len(sides) != 2 or max(sides) > MOST_PIXELS:
                raise ValueError(f"size={self.size}: expected an int or (height, width), each at most {MOST_PIXELS:,} pixels")
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name in ("mean", "std"):
            value = getattr(self, name)
            if value is not None:
                numbers = (float(value),) if isinstance(value, Real) else tuple(map(float, value))
                object.__setattr__(self, name, numbers)
                if not numbers or not all(math.isfinite(number) and (name == "mean" or number > 0) for number in numbers):
                    raise ValueError(f"{name}={value}: expected a number for each channel, such as (0.5, 0.5, 0.5)")
        if self.mean is not None and self.std is not None and len(self.mean) != len(self.std):
            raise ValueError(f"std={self.std}: expected {len(self.mean)} numbers, as many as mean has")
        if self.white is not None and not (isinstance(self.white, Real) and 0 < float(self.white) < math.inf):
            raise ValueError(f"white={self.white!r}: must be a positive number, such as 255")

    @property
    def first_source(self) -> str:
        return "features"

    @property
    def can_learn(self) -> bool:
        """Whether the module has weights that require gradients."""
        return any(weight.requires_grad for weight in self.module.parameters())

    def count_features(self, shape: tuple[int, ...]) -> int:
        """Return the number of features that the head reads of images of this shape."""
        return min(self.n_pcs, self._features(shape).count())

    def with_head(self, planned: object) -> Backbone:
        """Return the backbone with a head: its own, or one like the planned encoder if that is an mlp."""
        if self.head is not None:
            return self
        return replace(self, head=replace(planned, n_pcs=None) if isinstance(planned, MLP) else MLP())

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        front = BackboneFront(self._features(shape), self.n_pcs)
        head = self.with_head(None).head
        assert isinstance(head, MLP)
        network = head.build((len(front.pca.axes),), n_components)
        assert isinstance(network, Network)
        return Network(front, [network.get_submodule(name) for name in network.hidden], network.out, network.scale)

    def _features(self, shape: tuple[int, ...]) -> BackboneFeatures:
        check_image("a backbone", shape)
        size = (self.size, self.size) if isinstance(self.size, int) else self.size
        return BackboneFeatures(self.module, shape, mean=self.mean, std=self.std, size=size, white=self.white)

    def __repr__(self) -> str:
        """The call, with the class of the module alone: that of a ResNet has a hundred lines."""
        head = [] if self.head is None else [f"head={str(self.head)!r}"]
        given = [f"{name}={getattr(self, name)!r}" for name in OPTIONS if getattr(self, name) is not None]
        return f"Backbone({', '.join([f'{type(self.module).__name__}(…)', *head, f'n_pcs={self.n_pcs}', *given])})"

    def __str__(self) -> str:
        options = {name: getattr(self, name) for name in OPTIONS}
        own = [f"{name}={write_value(value)}" for name, value in options.items() if value is not None]
        parts = [type(self.module).__name__, *([] if self.head is None else [str(self.head)]), f"n_pcs={self.n_pcs}", *own]
        return f"backbone({', '.join(parts)})"
