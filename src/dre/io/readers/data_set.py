"""Data sets by name: the rows that are there to be learned from, or to be tested on, with their labels."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dre.data.rows import is_rows
from dre.datasets import load
from dre.datasets.dataset import Part
from dre.datasets.fashion_mnist import GARMENTS
from dre.datasets.files import Folder
from dre.io.readers.source import Array, Source, SourceError
from dre.notation import unknown

PARTS = ("train", "test", "all")
WORDS = {"garment": GARMENTS}  # for labels that are numbers, what they stand for


def open_data_set(name: str, part: str | None = None, folder: Folder = None) -> Source:
    """The training rows, unless the part is ``test``, or ``all``: both, in this order."""
    if part not in (None, *PARTS):
        raise SourceError(f"{name}: {unknown('part', str(part), list(PARTS))}")
    data = load(name, folder=folder)
    if part == "all":
        return _both(name, data.train, data.test)
    chosen = data.test if part == "test" else data.train
    return Source(chosen.rows, metadata=_in_words(chosen.levels))


def _both(name: str, train: Part, test: Part) -> Source:
    if is_rows(train.rows):
        raise SourceError(f"{name} is a stream: its parts can't be put together; choose train or test")
    stack = sparse.vstack if sparse.issparse(train.rows) else np.concatenate
    metadata = {level: np.concatenate([values, test.levels[level]]) for level, values in train.levels.items()}
    split = np.repeat(["train", "test"], [len(train.labels), len(test.labels)])
    return Source(stack([train.rows, test.rows]), metadata={**_in_words(metadata), "part": split})


def _in_words(levels: dict[str, Array]) -> dict[str, Array]:
    return {level: np.array(WORDS[level])[values] if level in WORDS else values for level, values in levels.items()}
