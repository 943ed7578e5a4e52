"""Rows from files and by name: one file per format, and all of them give the same thing."""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

from dre.datasets import NAMES
from dre.datasets.files import Folder
from dre.io.readers.data_set import open_data_set
from dre.io.readers.images import FORMAT as IMAGES
from dre.io.readers.source import Format, Source, SourceError
from dre.io.readers.suffixes import formats_in, suffix_of

__all__ = ["Format", "Source", "SourceError", "formats", "open_source"]


def open_source(data: str | Path, *, part: str | None = None, folder: Folder = None) -> Source:
    """Rows in a file or a folder of images, or those of a data set of ``dre.datasets`` by its name.

    >>> found = open_source("digits")
    >>> found.rows.shape, list(found.metadata)
    ((1347, 64), ['digit'])

    ``part`` is which array of a file with several, and may be written behind a colon: ``cells.h5ad:obsm/X_pca``. Large files
    are opened without being read: their ``rows`` are then ``Rows``. ``folder`` has the files of data sets. A text that
    is the name of a data set is that; ``./mnist`` is the file or folder.
    """
    if isinstance(data, str):
        data, part = _divided(data, part)
        if data in NAMES:
            return open_data_set(data, part, folder)
    path = Path(data).expanduser()
    if not os.fspath(data) or not path.exists():
        raise SourceError(_nowhere(path, os.fspath(data)))
    format_ = _format(path)
    if part is not None and not format_.has_parts:
        raise SourceError(f"{path} has no parts: leave out {part!r}")
    return format_.open(path, part)


@cache
def formats() -> dict[str, Format]:
    """All of them by their suffixes."""
    return formats_in(__name__)


def _divided(data: str, part: str | None) -> tuple[str, str | None]:
    """What is before and after the last colon, where that makes sense: a path may have colons too."""
    before, colon, after = data.rpartition(":")
    if part is not None or not colon or not before or Path(data).expanduser().exists():
        return data, part
    is_known = before in NAMES or Path(before).expanduser().exists() or _suffix(before) is not None
    return (before, after or None) if is_known else (data, None)


def _suffix(name: str) -> str | None:
    return suffix_of(name, formats())


def _format(path: Path) -> Format:
    suffix = _suffix(path.name)
    known = formats()[suffix] if suffix is not None else None
    if path.is_dir():
        if known is not None and known.is_folder:
            return known
        marked = (each for each in formats().values() if any((path / mark).exists() for mark in each.marks))
        return next(marked, IMAGES)
    if known is None:
        raise SourceError(f"{path}: expected {', '.join(formats())}, or a folder of images; save the rows with numpy.save")
    return known


def _nowhere(path: Path, said: str) -> str:
    if os.sep in said or _suffix(said) is not None:
        beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, beside, n=1)
        return f"{path} is not there" + (f". Did you mean {path.parent / close[0]}?" if close else ": check the path")
    close = difflib.get_close_matches(said.lower(), NAMES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{said!r} is neither a file nor a data set; data sets: {', '.join(NAMES)}.{hint}"
