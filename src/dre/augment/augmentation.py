"""The interface of augmentations, chains of them, user functions, and their text form ``flip + noise(0.1)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from dre.notation import Reader, Registry, write
from dre.runtime import IsolatedRNG, is_opaque

AUGMENTS = Registry("augmentation", "dre.augment")


class Augment:
    """A random change of the rows (b, d) or images (b, channels, height, width) of a batch, which keeps their shape.

    Subclasses are frozen dataclasses, ``class Blur(Augment, name="blur", reads_images=True)``, and implement ``__call__``. The
    data are scaled to an overall standard deviation of 1. Rows are centered. Augmentations that read images get them without
    centering, because warping a centered image would warp the mean image too.

    Attributes
    ----------
    name : str
        The name in texts; an augmentation without a name has no text form.
    reads_images : bool, default=False
        The augmentation needs images.
    on_features : bool, default=False
        The augmentation changes values whatever they mean, as noise does. With a PCA front it is applied to the front's output,
        which is cached; all others are applied to the rows, before the front.
    reads_radius : bool, default=False
        The augmentation is called with the distance of each row to its tenth neighbor too.
    capturable : bool, default=False
        Declares that a call can be captured in a CUDA graph: it never synchronizes with the host, its shapes do not depend on
        values, and its only randomness is the generator. Every class declares it for itself; it is not inherited.

    Examples
    --------
    >>> from dre.augment.warp import Flip
    >>> from dre.augment.noise import Noise
    >>> str(Flip() + Noise(0.1))
    'flip(0.5) + noise(0.1)'
    """

    name: ClassVar[str]
    reads_images: ClassVar[bool] = False
    on_features: ClassVar[bool] = False
    reads_radius: ClassVar[bool] = False
    capturable: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "", reads_images: bool = False, on_features: bool = False) -> None:
        cls.name, cls.reads_images, cls.on_features = name, reads_images, on_features
        cls.capturable = cls.__dict__.get("capturable", False)
        if name:
            AUGMENTS.add(name, cls)

    @property
    def has_text(self) -> bool:
        """Whether its text can be parsed again."""
        return True

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Change a batch.

        Parameters
        ----------
        x : Tensor of shape (b, ...)
            Left as it is.
        generator : torch.Generator
            The only source of randomness, on the device of x.

        Returns
        -------
        Tensor of the same shape
        """
        raise NotImplementedError

    def change(self, x: Tensor, generator: torch.Generator, radius: Tensor | None) -> Tensor:
        """Change a batch whose rows have this distance to their tenth neighbor; implemented with ``reads_radius`` alone."""
        return self(x, generator)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise a ValueError if it can't change rows of this shape."""
        if self.reads_images and len(shape) != 3:
            raise ValueError(
                f"augment={str(self)!r} changes images, but the rows are vectors of {shape[0]} values: "
                "reshape X to (n, height, width), or use noise or dropout"
            )

    def __add__(self, other: Augment) -> Chain:
        return Chain((*_links(self), *_links(other)))

    def __str__(self) -> str:
        return write(self, self.name)


@dataclass(frozen=True)
class Chain(Augment):
    """Augmentations applied one after the other, written ``flip + noise(0.1)``.

    Parameters
    ----------
    links : tuple of Augment
    """

    links: tuple[Augment, ...]

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return self.change(x, generator, None)

    def change(self, x: Tensor, generator: torch.Generator, radius: Tensor | None) -> Tensor:
        for link in self.links:
            x = link.change(x, generator, radius)
        return x

    @property
    def reads_radius(self) -> bool:  # type: ignore[override]
        return any(link.reads_radius for link in self.links)

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        return all(link.capturable for link in self.links)

    @property
    def has_text(self) -> bool:
        return all(link.has_text for link in self.links)

    def check(self, shape: tuple[int, ...]) -> None:
        for link in self.links:
            link.check(shape)

    def __str__(self) -> str:
        return " + ".join(map(str, self.links))


@dataclass(frozen=True)
class CallableAugment(Augment):
    """A user function as an augmentation.

    Parameters
    ----------
    function : callable
        From a batch of scaled rows to one of the same shape. It is capturable if it has a true attribute ``capturable``.
    """

    function: Callable[[Tensor], Tensor]

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.function, "capturable", False))

    @cached_property
    def _is_opaque(self) -> bool:
        return is_opaque(self.function)

    @property
    def has_text(self) -> bool:
        return False

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        # A capturable function does not draw; and in a capture, the state of a GPU can't be read.
        draws = generator.device.type == "cpu" or not self.capturable
        with IsolatedRNG.of(generator, exchange=self._is_opaque)() if draws else nullcontext():
            changed = self.function(x)
        if not isinstance(changed, Tensor) or changed.shape != x.shape:
            given = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
            raise TypeError(f"augment={self}: returned {given} for rows {tuple(x.shape)}; return a tensor of the same shape")
        return changed

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def parse_augment(text: str) -> Augment:
    """Parse an augmentation or a chain.

    Parameters
    ----------
    text : str
        ``"noise(0.5)"``, ``"affine + flip"``: what ``str`` writes.

    Returns
    -------
    Augment

    Examples
    --------
    >>> parse_augment("flip + noise(0.1)").links[1]
    Noise(sigma=0.1)
    """
    reader = Reader(text)
    links = [AUGMENTS.read(reader)]
    while reader.accept("+"):
        links.append(AUGMENTS.read(reader))
    if reader.next.kind != "end":
        raise reader.error(reader.next, f"unexpected {reader.next.text!r} after the {AUGMENTS.what}")
    return links[0] if len(links) == 1 else Chain(tuple(links))


def apply_augment(
    augment: Augment, x: Tensor, mean: Tensor, generator: torch.Generator, radius: Tensor | None = None
) -> Tensor:
    """Augment centered rows; those links that read images get the mean added before and subtracted after.

    Parameters
    ----------
    augment : Augment
    x : Tensor of shape (b, ...)
    mean : Tensor of the shape of one row
        The mean that was subtracted, at the scale of x.
    generator : torch.Generator
    radius : Tensor of shape (b,), optional
        Distance of each row to its tenth neighbor, for augmentations that read it.

    Returns
    -------
    Tensor of the shape of x
    """
    for link in _links(augment):
        x = link(x + mean, generator) - mean if link.reads_images else link.change(x, generator, radius)
    return x


def split_augment(augment: Augment | None) -> tuple[Augment | None, Augment | None]:
    """Split an augmentation into the part that must read the rows and the part that can be applied to features.

    Examples
    --------
    >>> [str(part) for part in split_augment(parse_augment("noise(0.1) + flip + dropout(0.2)"))]
    ['flip(0.5)', 'noise(0.1) + dropout(0.2)']
    """
    links = () if augment is None else _links(augment)
    on_rows = _chain(link for link in links if not link.on_features)
    return on_rows, _chain(link for link in links if link.on_features)


def uniform_like(x: Tensor, generator: torch.Generator, low: float, high: float, *shape: int) -> Tensor:
    """Uniform random numbers (b, *shape) between low and high, on the device of x (b, ...)."""
    return torch.empty(len(x), *shape, device=x.device).uniform_(low, high, generator=generator)


def _links(augment: Augment) -> tuple[Augment, ...]:
    return augment.links if isinstance(augment, Chain) else (augment,)


def _chain(links: Iterable[Augment]) -> Augment | None:
    each = tuple(links)
    return (each[0] if len(each) == 1 else Chain(each)) if each else None
