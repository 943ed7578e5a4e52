"""A file that is there whole or not at all: it is completed beside its place, and then moved there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Where to write what is to be at this path; it is there once all went well, and what was there stays otherwise.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "scores.json")) as part:
    ...         _ = part.write_text("{}")
    ...         print(os.listdir(folder) == ["scores.json"])
    ...     print(os.listdir(folder))
    False
    ['scores.json']
    """
    path = Path(path)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)) / path.name  # the same disk: moving it is one act
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        part.parent.rmdir()
