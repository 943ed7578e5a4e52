"""Training and test part of data that were published as one: 75/25, stratified by the main labels, always the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.datasets.dataset import Array, Part

TEST_SHARE = 0.25
SEED = 0


def split_ids(labels: Array) -> tuple[Array, Array]:
    """Which rows are for training, and which for testing.

    >>> import numpy as np
    >>> train, test = split_ids(np.repeat([0, 1], [8, 4]))
    >>> len(train), sorted(test < 8)
    (9, [np.False_, np.True_, np.True_])
    """
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(labels)), test_size=TEST_SHARE, stratify=labels, random_state=SEED)
    return train, test


def split(rows: Any, levels: dict[str, Array]) -> tuple[Part, Part]:
    train, test = (
        Part.of(rows[ids], {name: labels[ids] for name, labels in levels.items()})
        for ids in split_ids(next(iter(levels.values())))
    )
    return train, test
