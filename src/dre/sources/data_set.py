"""Data sets by name: the rows that are there to be learned from, or to be tested on, with their labels."""

from __future__ import annotations

from dre.datasets import load
from dre.datasets.files import Folder
from dre.notation import unknown
from dre.sources.source import Source, SourceError

PARTS = ("train", "test")


def open_data_set(name: str, part: str | None = None, folder: Folder = None) -> Source:
    """The training rows, unless the part is ``test``."""
    if part not in (None, *PARTS):
        raise SourceError(f"{name}: {unknown('part', str(part), list(PARTS))}")
    data = load(name, folder=folder)
    chosen = data.test if part == "test" else data.train
    return Source(chosen.rows, metadata=dict(chosen.levels))
