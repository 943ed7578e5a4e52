"""What takes the places of rows in a map, piece by piece, and keeps them in a file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Sink(Protocol):
    def write(self, places: Array) -> None:
        """The next rows, float32 (m, components)."""


class Filled:
    """A sink over an array of the right shape, on a disk: filled from its first row on."""

    def __init__(self, held: Any) -> None:
        self._held, self._at = held, 0

    def write(self, places: Array) -> None:
        self._held[self._at : self._at + len(places)] = places
        self._at += len(places)


@dataclass(frozen=True, eq=False)
class Embedding:
    """What is to be written: how many rows with how many components, and what they are called."""

    rows: int
    components: int
    names: Array | None = None  # (rows,), where the rows have names
    source: Path | None = None  # the file that the rows come from
    titles: tuple[str, ...] | None = None  # of the columns, where they are no places but something else that rows have

    @property
    def columns(self) -> list[str]:
        return list(self.titles or (f"dre{i}" for i in range(1, self.components + 1)))


@dataclass(frozen=True)
class Format:
    """One kind of file. A new one is a file in this folder with such a ``FORMAT``."""

    suffixes: tuple[str, ...]  # in lower case, with the dot
    open: Callable[[Path, Embedding], AbstractContextManager[Sink]]  # writes to this path
