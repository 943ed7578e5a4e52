"""The data of a job: a data set cut to what the plan asks for; in a quick run scikit-learn's digits where it is not at hand."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dre.compare.plan import Data
from dre.datasets import Dataset, DatasetNotFoundError, DatasetSplit, load

Array = np.ndarray[Any, Any]
SIDE = 28  # of MNIST's images
LEVELS = {"imdb": ("sentiment", "stars"), "tasic2018": ("class", "cluster")}  # coarse and fine, of what has both


def loaded(plan: Data, folder: str | None, *, stand_in: bool = False) -> Dataset:
    """``stand_in`` puts the digits, enlarged where images are wanted, in the place of what is not found, and says so."""
    try:
        whole = _whole(plan.set, folder, tuple(sorted(plan.options.items())))
    except DatasetNotFoundError:
        if not stand_in:
            raise
        whole = digits_in_place_of(plan)
    cut = spread if plan.spread else first
    return replace(whole, train=cut(whole.train, plan.rows), test=cut(whole.test, plan.test_rows))


@lru_cache(maxsize=2)  # jobs come data set by data set
def _whole(name: str, folder: str | None, options: tuple[tuple[str, Any], ...]) -> Dataset:
    return load(name, folder=folder, **dict(options))


def digits_in_place_of(plan: Data) -> Dataset:
    """In the shape of what is missing: images of 28 × 28 for the kin of MNIST, 64 columns for the others."""
    digits = load("digits", images=True)

    def shaped(part: DatasetSplit) -> DatasetSplit:
        rows = np.asarray(part.rows)
        images = np.kron(rows, np.ones((1, 3, 3)))[:, :SIDE, :SIDE] * 15  # 8 × 8 pixels of 0 to 16
        images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
        shown = images if "mnist" in plan.set else rows.reshape(len(rows), -1)
        coarse, fine = LEVELS.get(plan.set, ("digit", "digit"))
        levels = {coarse: part.labels // 5, fine: part.labels}
        return DatasetSplit(shown, levels[coarse], levels)

    title = f"{plan.title} (not at hand: the digits of scikit-learn stand in)"
    return replace(digits, title=title, train=shaped(digits.train), test=shaped(digits.test))


def first(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """Its first so many rows; None: all."""
    return _cut(part, slice(count))


def spread(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """So many of its rows, in equal steps."""
    return first(_cut(part, slice(None, None, max(1, part.rows.shape[0] // (count or part.rows.shape[0])))), count)


def _cut(part: DatasetSplit, which: slice) -> DatasetSplit:
    return DatasetSplit(part.rows[which], part.labels[which], {name: values[which] for name, values in part.levels.items()})
