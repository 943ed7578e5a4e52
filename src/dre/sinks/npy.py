""".npy: an array of float32, of which only a piece is ever in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dre.sinks.sink import Array, Embedding, Format


class _Npy:
    def __init__(self, held: Array) -> None:
        self._held, self._at = held, 0

    def write(self, places: Array) -> None:
        self._held[self._at : self._at + len(places)] = places
        self._at += len(places)


@contextmanager
def open_npy(path: Path, embedding: Embedding) -> Iterator[_Npy]:
    held = np.lib.format.open_memmap(path, "w+", np.float32, (embedding.rows, embedding.components))
    yield _Npy(held)
    held.flush()


FORMAT = Format((".npy",), open_npy)
