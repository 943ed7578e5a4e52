"""Encoders: networks from a row to its coordinates in the map, described before the shape of the data is known.

To add one, write a file here with a frozen dataclass like the others. Any ``nn.Module`` works as an encoder too.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import ClassVar

from torch import nn

from dre.notation import Registry, write

ENCODERS = Registry("encoder", __name__)


class Encoder:
    """The description of a network; ``build`` creates it.

    Subclasses are frozen dataclasses with a name, ``class Mine(Encoder, name="mine")``. The submodules ``h1``, ``h2``, ... of
    the network are the sources of the recursions.

    Attributes
    ----------
    name : str
        The name in texts; an encoder that holds a module has none, and no text form.
    capturable : bool
        Declares that a forward and backward pass can be captured in a CUDA graph: it never synchronizes with the host, its
        shapes do not depend on values, and its only randomness is torch's generator of the device. Every class declares it for
        itself; it is not inherited.
    """

    name: ClassVar[str]
    capturable: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "") -> None:
        cls.name = name
        cls.capturable = cls.__dict__.get("capturable", False)
        if name:
            ENCODERS.add(name, cls)

    @property
    def has_text(self) -> bool:
        """Whether its text can be parsed again."""
        return bool(self.name)

    @property
    def first_source(self) -> str:
        """The source of the first stage's neighbors: ``"x"``, or ``"features"`` for the output of a front."""
        return "x"

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        """Create the network with fresh weights.

        Parameters
        ----------
        shape : tuple of int
            Shape of one row, (d,) or (channels, height, width).
        n_components : int
            Dimensions of the map.

        Returns
        -------
        nn.Module
            Maps (n, *shape) to (n, n_components).
        """
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


def check_positive_ints(encoder: Encoder, *names: str) -> None:
    """Raise a ValueError unless these fields are integers of at least 1, or tuples of them."""
    for name in names:
        value = getattr(encoder, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(isinstance(number, Integral) and int(number) >= 1 for number in numbers):
            raise ValueError(f"{name}={value!r}: must be an integer of at least 1, or several where a tuple is expected")


def check_image(name: str, shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless rows of this shape are images."""
    if len(shape) != 3:
        raise ValueError(
            f"{name} reads images, but the rows are vectors of {flat_size(shape)} values: "
            "reshape X to (n, height, width), or use model-a or mlp"
        )


def flat_size(shape: tuple[int, ...]) -> int:
    """The number of values of a row."""
    return math.prod(shape)


def halved_area(sides: tuple[int, ...], times: int) -> int:
    """The pixels of an image whose sides were halved so many times, each time rounded up.

    >>> halved_area((28, 27), 2)
    49
    """
    for _ in range(times):
        sides = tuple(math.ceil(side / 2) for side in sides)
    return math.prod(sides)
