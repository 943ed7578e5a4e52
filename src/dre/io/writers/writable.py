"""Whether a file can be written, which is worth knowing before a long fit."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from dre.io.readers.suffixes import suffix_of


def check_writable(
    path: str | Path, suffixes: Iterable[str] | None = None, *, force: bool = False, read: Iterable[Path | None] = ()
) -> str:
    """Which of the suffixes the name has: by default one of those of places.

    Refuses what can't be written, what is there unless forced to write over it, and what is ``read`` even then.
    """
    from dre.io.writers import formats

    path, suffixes = Path(path), list(suffixes or formats())
    suffix = suffix_of(path.name, suffixes)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: choose another name, that of a file")
    if suffix is None:
        raise ValueError(
            f"{path}: expected a name that ends in {', '.join(suffixes)}, such as {path.stem or 'map'}{suffixes[0]}"
        )
    if path.exists() and any(each is not None and each.exists() and path.samefile(each) for each in read):
        raise ValueError(f"{path} is read, and would be written over: choose another name")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: pass --force to write over it, or another name")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path.parent} is no folder that can be written to: make it, or choose another")
    return suffix
