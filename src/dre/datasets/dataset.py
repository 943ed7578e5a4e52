"""A dataset: training and test rows with their labels, and a description of their origin."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TEST_SIZE = 0.25
SEED = 0


@dataclass(frozen=True, eq=False, repr=False)
class DatasetSplit:
    """The training or the test rows of a dataset, with labels at one or more levels, such as class and cluster.

    Parameters
    ----------
    rows : array of shape (n, d) or (n, h, w), or `dre.data.rows.Rows`
    labels : array of shape (n,)
        Labels of the main level.
    levels : dict of arrays of shape (n,)
        Labels by level, the main level first.

    Examples
    --------
    >>> DatasetSplit.from_levels(np.zeros((4, 3)), {"class": np.array(["a", "a", "b", "b"]), "cluster": np.arange(4)})
    4 rows of 3; class: 2, cluster: 4
    """

    rows: Any
    labels: Array
    levels: dict[str, Array]

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels), **{name: len(labels) for name, labels in self.levels.items()}}
        for name, length in lengths.items():
            if length != self.rows.shape[0]:
                raise ValueError(f"{name}: {length} labels for {self.rows.shape[0]} rows; expected one per row")

    @classmethod
    def from_levels(cls, rows: Any, levels: dict[str, Array]) -> DatasetSplit:
        """Take the first level as the main one."""
        return cls(rows, next(iter(levels.values())), dict(levels))

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.rows.shape[1:]))
        classes = ", ".join(f"{name}: {len(np.unique(labels))}" for name, labels in self.levels.items())
        return f"{self.rows.shape[0]:,} rows of {size}; {classes}"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training and test rows with their labels.

    Parameters
    ----------
    name : str
        Name that `dre.datasets.load` knows, such as ``"mnist"``.
    title : str
        Name in tables and figures, such as ``"MNIST"``.
    train, test : DatasetSplit
    description : str
        Content, origin, license and preprocessing.
    label_names : tuple of str, default=()
        Names of the labels 0, 1, … of the main level, where the labels are numbers that stand for names.
    """

    name: str
    title: str
    train: DatasetSplit
    test: DatasetSplit
    description: str
    label_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        description = textwrap.fill(" ".join(self.description.split()), 120)
        return f"{self.title}\n    train: {self.train!r}\n    test: {self.test!r}\n{description}"


def stratified_ids(labels: Array) -> tuple[Array, Array]:
    """Split rows 75/25, stratified by label and always the same way, for data published in one piece.

    Parameters
    ----------
    labels : array of shape (n,)

    Returns
    -------
    train, test : arrays of int
        Ids of the training rows and of the test rows.

    Examples
    --------
    >>> train, test = stratified_ids(np.repeat([0, 1], [8, 4]))
    >>> len(train), len(test)
    (9, 3)
    """
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(labels)), test_size=TEST_SIZE, stratify=labels, random_state=SEED)
    return train, test


def stratified_split(rows: Any, levels: dict[str, Array]) -> tuple[DatasetSplit, DatasetSplit]:
    """Split rows and all their labels by `stratified_ids` of the main level.

    Examples
    --------
    >>> stratified_split(np.zeros((12, 2)), {"class": np.repeat([0, 1], [8, 4])})
    (9 rows of 2; class: 2, 3 rows of 2; class: 2)
    """
    train, test = (
        DatasetSplit.from_levels(rows[ids], {name: labels[ids] for name, labels in levels.items()})
        for ids in stratified_ids(next(iter(levels.values())))
    )
    return train, test
