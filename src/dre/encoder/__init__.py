"""Networks from a row to its place in the map, as plans that are built when the shape of the data is known.

To add one, write a file here with a frozen dataclass like those beside it. Any ``nn.Module`` works as an encoder too.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import ClassVar

from torch import nn

from dre.notation import Registry, write

ENCODERS = Registry("encoder", __name__)


class Encoder:
    """A plan of a network; ``build`` makes it for rows of a shape, (d,) or (channels, height, width).

    The submodules ``h1``, ``h2``, ... are the sources that recursions read.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        ENCODERS.add(name, cls)

    @property
    def first_source(self) -> str:
        """Where a recipe finds its first neighbours: in the rows, or in what a computed front gives."""
        return "x"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


def check_positive_ints(plan: Encoder, *names: str) -> None:
    """Refuse a plan with anything but whole numbers from 1 up in these fields, each a number or a tuple of them."""
    for name in names:
        value = getattr(plan, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(isinstance(number, Integral) and int(number) >= 1 for number in numbers):
            raise ValueError(f"{name}={value}: must be whole, and at least 1")


def flat_size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def check_image(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise ValueError(
            f"{name} reads images, but the rows are vectors of {flat_size(shape)} values: "
            "reshape X to (n, height, width), or use model-a or mlp"
        )
