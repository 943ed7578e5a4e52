"""Random changes to the rows of a batch, in training only: never for targets, never in transform.

To add one, write a file here with a frozen dataclass like those beside it.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dre.notation import Family, write

AUGMENTS = Family("augmentation", __name__)


class Augment:
    """Rows (b, ...) to rows of the same shape. The data are centred and their overall standard deviation is 1."""

    name: ClassVar[str]

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        AUGMENTS.add(name, cls)

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)
