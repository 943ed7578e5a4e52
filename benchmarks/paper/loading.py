"""Load the data of a job, cut as the spec says; a quick run replaces missing data by scikit-learn's digits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dre.datasets import Dataset, DatasetNotFoundError, DatasetSplit, load
from paper.spec import Data, Row, Spec
from paper.store import Store

Array = np.ndarray[Any, Any]
SIDE = 28  # of MNIST's images
LEVELS = {"imdb": ("sentiment", "stars"), "tasic2018": ("class", "cluster")}  # coarse and fine labels of data that have both


def load_data(data: Data, folder: str | None, *, stand_in: bool = False) -> Dataset:
    """Load a data set; with ``stand_in`` the digits replace one that is not found, and the title says so."""
    try:
        full = _load(data.set, folder, tuple(sorted(data.options.items())))
    except DatasetNotFoundError:
        if not stand_in:
            raise
        full = digits_in_place_of(data)
    cut = spread if data.spread else first
    return replace(full, train=cut(full.train, data.rows), test=cut(full.test, data.test_rows))


@lru_cache(maxsize=2)  # jobs come data set by data set
def _load(name: str, folder: str | None, options: tuple[tuple[str, Any], ...]) -> Dataset:
    return load(name, folder=folder, **dict(options))


def digits_in_place_of(data: Data) -> Dataset:
    """Return the digits in the shape of the missing data: images of 28 × 28 for MNIST and its kin, else 64 columns."""
    digits = load("digits", images=True)

    def shaped(part: DatasetSplit) -> DatasetSplit:
        rows = np.asarray(part.rows)
        images = np.kron(rows, np.ones((1, 3, 3)))[:, :SIDE, :SIDE] * 15  # 8 × 8 pixels of 0 to 16
        images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
        shown = images if "mnist" in data.set else rows.reshape(len(rows), -1)
        coarse, fine = LEVELS.get(data.set, ("digit", "digit"))
        levels = {coarse: part.labels // 5, fine: part.labels}
        return DatasetSplit(shown, levels[coarse], levels)

    return replace(digits, title=stand_in_title(data.title), train=shaped(digits.train), test=shaped(digits.test))


def stand_in_title(title: str) -> str:
    """Return the title of the digits in place of a data set.

    >>> stand_in_title("MNIST")
    'digits (stand-in for MNIST)'
    """
    return f"digits (stand-in for {title})"


def mark_stand_ins(spec: Spec, store: Store) -> Spec:
    """Return the spec with data and figure rows renamed that were measured on the digits, without their published values."""
    titles = {record["job"]["data"]: record["data"] for record in store.all() if "data" in record}
    missing = {name for name, data in spec.data.items() if titles.get(name) == stand_in_title(data.title)}

    def renamed(row: Row) -> Row:
        return replace(row, title=stand_in_title(row.title)) if row.data in missing else row

    return replace(
        spec,
        data={
            name: replace(data, title=stand_in_title(data.title)) if name in missing else data
            for name, data in spec.data.items()
        },
        figures=tuple(replace(figure, rows=tuple(map(renamed, figure.rows))) for figure in spec.figures),
        tables=tuple(
            replace(table, published={name: values for name, values in table.published.items() if name not in missing})
            for table in spec.tables
        ),
    )


def first(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """Return the first ``count`` rows; None: all."""
    return _cut(part, slice(count))


def spread(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """Return ``count`` rows in equal steps."""
    return first(_cut(part, slice(None, None, max(1, part.rows.shape[0] // (count or part.rows.shape[0])))), count)


def _cut(part: DatasetSplit, which: slice) -> DatasetSplit:
    return DatasetSplit(part.rows[which], part.labels[which], {name: values[which] for name, values in part.levels.items()})
