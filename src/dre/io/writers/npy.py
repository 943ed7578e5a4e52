""".npy: an array of float32, of which only a piece is ever in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dre.io.writers.sink import Embedding, Filled, Format


@contextmanager
def open_npy(path: Path, embedding: Embedding) -> Iterator[Filled]:
    held = np.lib.format.open_memmap(path, "w+", np.float32, (embedding.rows, embedding.components))
    yield Filled(held)
    held.flush()


FORMAT = Format((".npy",), open_npy)
