"""What a dataset is: rows to learn from and rows to be tested on, each with its labels, and where they come from."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Rows with their labels, of which there may be several levels, such as classes and the clusters in them.

    >>> import numpy as np
    >>> Part.of(np.zeros((4, 3)), {"class": np.array(["a", "a", "b", "b"]), "cluster": np.arange(4)})
    4 rows of 3; class: 2, cluster: 4
    """

    rows: Any  # array (n, d) or (n, h, w), or `dre.data.rows.Rows`
    labels: Array  # (n,), those of the first level
    levels: dict[str, Array]  # by name, the main one first

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels), **{name: len(labels) for name, labels in self.levels.items()}}
        for name, length in lengths.items():
            if length != self.rows.shape[0]:
                raise ValueError(f"{name}: {length} labels for {self.rows.shape[0]} rows; there must be one for each")

    @classmethod
    def of(cls, rows: Any, levels: dict[str, Array]) -> Part:
        return cls(rows, next(iter(levels.values())), dict(levels))

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.rows.shape[1:]))
        kinds = ", ".join(f"{name}: {len(np.unique(labels))}" for name, labels in self.levels.items())
        return f"{self.rows.shape[0]:,} rows of {size}; {kinds}"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    name: str  # "mnist", what `load` calls it
    title: str  # "MNIST", what tables call it
    train: Part
    test: Part
    about: str  # what it is, where it comes from, its licence, how it was preprocessed
    label_names: tuple[str, ...] = ()  # what the labels 0, 1, … of the first level stand for, where they are numbers

    def __repr__(self) -> str:
        about = textwrap.fill(" ".join(self.about.split()), 120)
        return f"{self.title}\n    train: {self.train!r}\n    test: {self.test!r}\n{about}"
