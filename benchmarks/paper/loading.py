"""Load the data of a job, cut as the spec says."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from dre.datasets import Dataset, DatasetNotFoundError, DatasetSplit, load
from paper.spec import Data
from paper.stand_ins import load_stand_in


def load_data(data: Data, folder: str | None) -> Dataset:
    """Load a data set, or the stand-in that a quick run has in its place."""
    full = load_stand_in(data) if data.stand_in_for else _load(data.set, folder, _options(data))
    cut = spread if data.spread else first
    return replace(full, train=cut(full.train, data.rows), test=cut(full.test, data.test_rows))


def is_available(data: Data, folder: str | None) -> bool:
    """Whether a data set can be loaded."""
    try:
        _load(data.set, folder, _options(data))
    except DatasetNotFoundError:
        return False
    return True


def _options(data: Data) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(data.options.items()))


@lru_cache(maxsize=2)  # jobs come data set by data set
def _load(name: str, folder: str | None, options: tuple[tuple[str, Any], ...]) -> Dataset:
    return load(name, folder=folder, **dict(options))


def first(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """Return the first ``count`` rows; None: all."""
    return _cut(part, slice(count))


def spread(part: DatasetSplit, count: int | None) -> DatasetSplit:
    """Return ``count`` rows in equal steps."""
    return first(_cut(part, slice(None, None, max(1, part.rows.shape[0] // (count or part.rows.shape[0])))), count)


def _cut(part: DatasetSplit, which: slice) -> DatasetSplit:
    return DatasetSplit(part.rows[which], part.labels[which], {name: values[which] for name, values in part.levels.items()})
