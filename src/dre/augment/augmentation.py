"""Random changes to the rows of a batch, in training only: never for targets, never in transform.

To add one, write a file here with a frozen dataclass like those beside it. Any callable from rows to rows works too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import ClassVar

import torch
from torch import Tensor

from dre.notation import Reader, Registry, write

AUGMENTS = Registry("augmentation", "dre.augment")


class Augment:
    """Rows (b, d), or images (b, channels, height, width), to rows of the same shape.

    The overall standard deviation of the data is 1. Rows are centred; images that are moved or turned are not, since the mean
    image would move along. Draw from the generator alone, on its device.

    Say ``reads_images=True`` of one that needs images, and ``anywhere=True`` of one that changes values of any kind, whatever
    they stand for: it may then be applied to what a computed front gives, which is quicker, rather than to the rows.

    >>> from dre.augment.warp import Flip
    >>> from dre.augment.noise import Noise
    >>> str(Flip() + Noise(0.1))
    'flip(0.5) + noise(0.1)'
    """

    name: ClassVar[str]
    reads_images: ClassVar[bool] = False
    anywhere: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "", reads_images: bool = False, anywhere: bool = False) -> None:
        cls.name, cls.reads_images, cls.anywhere = name, reads_images, anywhere
        if name:  # what has none is not written by name
            AUGMENTS.add(name, cls)

    @property
    def has_text(self) -> bool:
        """Whether its text can be read back."""
        return True

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        raise NotImplementedError

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse rows of a shape that it can't change, before anything is trained."""
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
    """One after the other; written ``flip + noise(0.1)``."""

    links: tuple[Augment, ...]

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        for link in self.links:
            x = link(x, generator)
        return x

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
    """A function of the user's own, from a batch of scaled rows to one of the same shape."""

    function: Callable[[Tensor], Tensor]

    @property
    def has_text(self) -> bool:
        return False

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        changed = self.function(x)
        if not isinstance(changed, Tensor) or changed.shape != x.shape:
            given = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
            raise TypeError(f"augment={self}: gave {given} for rows {tuple(x.shape)}; it must give a tensor of the same shape")
        return changed

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


Augmenting = str | Augment | Callable[[Tensor], Tensor] | None  # what a user may say


def _links(augment: Augment) -> tuple[Augment, ...]:
    return augment.links if isinstance(augment, Chain) else (augment,)


def augmented(augment: Augment, x: Tensor, mean: Tensor, generator: torch.Generator) -> Tensor:
    """Centred rows, changed; ``mean`` is what was taken from them, at their scale."""
    for link in _links(augment):
        x = link(x + mean, generator) - mean if link.reads_images else link(x, generator)
    return x


def split_augment(augment: Augment | None) -> tuple[Augment | None, Augment | None]:
    """What must see rows as they were handed in, and what changes values of any kind, as noise does."""
    links = () if augment is None else _links(augment)
    anywhere = [link.anywhere for link in links]
    return _joined(compress(links, map(not_, anywhere))), _joined(compress(links, anywhere))


def _joined(links: Iterable[Augment]) -> Augment | None:
    each = tuple(links)
    return (each[0] if len(each) == 1 else Chain(each)) if each else None


def parse_augment(text: str) -> Augment:
    """``noise(0.5)``, ``affine + flip``; what ``str`` of it has written.

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


def uniform_like(x: Tensor, generator: torch.Generator, low: float, high: float, *shape: int) -> Tensor:
    """Uniform numbers, one set for each row of x."""
    return torch.empty(len(x), *shape, device=x.device).uniform_(low, high, generator=generator)
