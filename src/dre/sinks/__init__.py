"""Places in a map to files: one file per format. A file is there whole or not at all."""

from __future__ import annotations

import importlib
import os
import pkgutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from dre.sinks.sink import Embedding, Format, Sink

__all__ = ["Embedding", "Format", "Sink", "check_writable", "formats", "open_sink"]


@contextmanager
def open_sink(path: str | Path, embedding: Embedding, *, force: bool = False) -> Iterator[Sink]:
    """What writes places to a file as they come; its name says the format.

    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_sink(Path(folder, "map.csv"), Embedding(2, 2)) as sink:
    ...         sink.write(np.float32([[0, 1], [2, 3.5]]))
    ...     print(Path(folder, "map.csv").read_text().split())
    ['dre1,dre2', '0,1', '2,3.5']

    Nothing is there under that name before all is written, and what was there stays if that fails.
    """
    format_ = check_writable(path, force=force)
    path = Path(path)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)) / path.name  # the same disk: moving it is one act
    try:
        with format_.open(part, embedding) as sink:
            yield sink
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        part.parent.rmdir()


def check_writable(path: str | Path, *, force: bool = False) -> Format:
    """Whether such a file can be written there, which is worth knowing before a long fit; what writes it."""
    path = Path(path)
    known = formats()
    suffix = max((each for each in known if path.name.lower().endswith(each)), key=len, default=None)
    if suffix is None:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(known)}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: choose another name")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: pass --force to write over it, or another name")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path.parent} is no folder that can be written to: make it, or choose another")
    return known[suffix]


@cache
def formats() -> dict[str, Format]:
    """All of them by their suffixes: those that the files of this folder have as ``FORMAT``."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    known = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {suffix: format_ for format_ in known for suffix in format_.suffixes}
