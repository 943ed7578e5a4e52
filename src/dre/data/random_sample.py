"""A random sample of rows to fit a map to, where all of them would take too long or too much memory."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch

from dre.data.rows import RowSubset, is_rows, read_all
from dre.runtime import RandomStreams

Array = np.ndarray[Any, Any]


def check_sample(sample: Any) -> int | None:
    """Check the parameter ``sample``: None, or a number of rows."""
    if sample is None:
        return None
    if isinstance(sample, bool) or not isinstance(sample, Integral) or sample < 2:
        raise ValueError(f"sample={sample!r}: expected a number of rows, 2 or more, or None")
    return int(sample)


def sample_ids(n: int, sample: int | None, seed: int) -> Array | None:
    """Return the ids of a random sample of n rows, in increasing order; None if all rows are wanted.

    The ids depend on the seed alone, not on the device.

    >>> sample_ids(5, None, 0), sample_ids(5, 9, 0), len(sample_ids(1000, 10, 0))
    (None, None, 10)
    """
    if sample is None or sample >= n:
        return None
    generator = RandomStreams(seed, torch.device("cpu")).generator("sample")
    # as many as are needed, without a permutation of all rows
    chosen = np.random.default_rng(generator.initial_seed()).choice(n, sample, replace=False, shuffle=False)
    return np.sort(chosen)


def take_sample(X: Any, ids: Array) -> Any:
    """Return the rows with these ids. Those of a stream or a file are read in one pass, and held in memory."""
    if not is_rows(X):
        return X[ids]
    first = X.read(0, 1)
    dtype = np.float64 if first.dtype == torch.double else np.float32
    return read_all(RowSubset(X, torch.from_numpy(ids)), dtype)
