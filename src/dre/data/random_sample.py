"""The rows that a process fits: all, a random sample where all would take too long, or its share of them among ranks."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch

from dre.data.rows import RowSubset, float64_pieces, is_rows, rows_at
from dre.runtime import RandomStreams
from dre.runtime.ranks import RankError, Ranks
from dre.runtime.scratch import HELD_BYTES, empty, held

Array = np.ndarray[Any, Any]
LEAST = 2  # rows of a rank


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
    """Return the rows with these ids. Those of a stream or a file are read in one pass; many of them lie in a scratch file."""
    if not is_rows(X):
        return rows_at(X, torch.from_numpy(ids))
    dtype = torch.double if X.read(0, 1).dtype == torch.double else torch.float32
    out = empty((len(ids), *X.shape[1:]), dtype, what="the sampled rows", held_bytes=min(HELD_BYTES, held()))
    at = 0
    for part in float64_pieces(RowSubset(X, torch.from_numpy(ids))):
        out[at : at + len(part)] = part
        at += len(part)
    return out.numpy()


class FitRows(NamedTuple):
    """The rows that a process fits."""

    X: Any
    n: int  # rows that all ranks fit
    scaled: Any  # rows whose moments this rank finds: X, and on the first rank also those that are left over
    ids: Array | None = None  # of these rows in the data; None: all of them
    sample: Array | None = None  # ids of the rows that all ranks fit; None: all rows, but for a few that are left over
    order: torch.Tensor | None = None  # position of the rows of all ranks in the sample; None: the first rank's come first


def choose_rows(X: Any, sample: int | None, seed: int, ranks: Ranks, *, is_own: bool = False) -> FitRows:
    """Take a sample of the rows, and of that the share of this rank; ``is_own`` if X is its share already."""
    if is_own:
        if sample is not None:
            raise ValueError(f"sample={sample}: rows that are a rank's own are fitted as they are; sample them before")
        return FitRows(X, X.shape[0] * ranks.size, X)
    ids = sample_ids(X.shape[0], sample, seed)
    n = X.shape[0] if ids is None else len(ids)
    if not ranks.is_connected:
        rows = X if ids is None else take_sample(X, ids)
        return FitRows(rows, n, rows, ids, ids)
    if n < LEAST * ranks.size:
        raise RankError(f"{n} rows are too few for {ranks.size} ranks, which need {LEAST} each: start fewer ranks")
    order = ranks.dealt(n, seed)
    rows = _in_data(ranks.deal(n, seed).numpy(), ids)
    own = _taken(X, rows, held=ids is not None)
    left = np.setdiff1d(np.arange(n), order.numpy()) if len(order) < n and ranks.is_first else rows[:0]
    scaled = _taken(X, np.sort(np.concatenate([rows, _in_data(left, ids)])), held=False) if len(left) else own
    return FitRows(own, len(order), scaled, rows, ids, order)


def _in_data(rows: Array, sample: Array | None) -> Array:
    return rows if sample is None else sample[rows]


def _taken(X: Any, ids: Array, *, held: bool) -> Any:
    """Rows with these ids; those of a stream are held in memory, or read when they are needed."""
    return take_sample(X, ids) if held or not is_rows(X) else RowSubset(X, torch.from_numpy(ids))
