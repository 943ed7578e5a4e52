"""Places in a map to files: one file per format. A file is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from dre.atomic import atomic_write
from dre.io.readers.suffixes import formats_in
from dre.io.writers.sink import Embedding, Format, Sink
from dre.io.writers.writable import check_writable

__all__ = ["Embedding", "Format", "Sink", "atomic_write", "check_writable", "formats", "open_sink"]


@contextmanager
def open_sink(path: str | Path, embedding: Embedding, *, force: bool = False) -> Iterator[Sink]:
    """What writes places to a file as they come; its name says the format.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_sink(Path(folder, "map.csv"), Embedding(2, 2)) as sink:
    ...         sink.write(np.float32([[0, 1], [2, 3.5]]))
    ...     print(Path(folder, "map.csv").read_text().split())
    ['dre1,dre2', '0,1', '2,3.5']

    Nothing is there under that name before all is written, and what was there stays if that fails.
    """
    format_ = formats()[check_writable(path, force=force)]
    with atomic_write(path) as part, format_.open(part, embedding) as sink:
        yield sink


@cache
def formats() -> dict[str, Format]:
    """All of them by their suffixes."""
    return formats_in(__name__)
