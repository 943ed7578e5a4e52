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


@dataclass(frozen=True, eq=False)
class Embedding:
    """What is to be written: how many rows with how many components, and what they are called."""

    rows: int
    components: int
    names: Array | None = None  # (rows,), where the rows have names
    source: Path | None = None  # the file that the rows come from

    @property
    def columns(self) -> list[str]:
        return [f"dre{i}" for i in range(1, self.components + 1)]


@dataclass(frozen=True)
class Format:
    """One kind of file. A new one is a file in this folder with such a ``FORMAT``."""

    suffixes: tuple[str, ...]  # in lower case, with the dot
    open: Callable[[Path, Embedding], AbstractContextManager[Sink]]  # writes to this path
