"""Rows of a file, read when they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from dre.data.rows import HostRows
from dre.io.readers.source import check_numbers, reading


class Held(Protocol):
    """What a library gives for an array in a file: nothing is read before it is asked for a slice, or for increasing ids."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, which: Any) -> Any: ...


class FileRows:
    """Rows over such an array, of its own kind of numbers; those who read them convert and scale them.

    They are no ``HostRows``: their values are looked at as they are read, since nobody could before.
    """

    def __init__(self, path: Path, held: Held, what: str = "an array") -> None:
        check_numbers(path, held.shape, held.dtype, what)
        self.shape = tuple(int(size) for size in held.shape)
        self._path, self._rows = path, HostRows(held)

    def read(self, start: int, stop: int) -> Tensor:
        with reading(self._path):
            return self._rows.read(start, stop)

    def take(self, ids: Tensor) -> Tensor:
        """Each row is read once, in the order of the file, however they were asked for."""
        wanted, places = np.unique(ids.cpu().numpy(), return_inverse=True)
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < self.shape[0]:
            raise IndexError(f"rows from {wanted[0]} to {wanted[-1]}, but there are {self.shape[0]}, counted from 0")
        with reading(self._path):
            return self._rows.take(torch.from_numpy(wanted))[torch.from_numpy(places)]
