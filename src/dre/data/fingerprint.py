"""A fingerprint of rows, by which others are noticed: shape, dtype, and a hash of a sample of the values."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dre.data.subsample import evenly_spaced_ids, to_array

HASH = ", sha256 "  # before the hash in a fingerprint
SAMPLED_ROWS, SAMPLED_VALUES = 1000, 2**22  # at most: they are read in an instant


def fingerprint(X: Any, *, sampled: bool = True) -> str:
    """Describe rows by shape, dtype and a hash of a sample, without reading all of them.

    Parameters
    ----------
    X : array, sparse matrix or Rows of shape (n, ...)
    sampled : bool, default=True
        False hashes all values.

    Examples
    --------
    >>> fingerprint(np.zeros((3, 2))), fingerprint(np.zeros((3, 2), np.float32))
    ('3 x 2 float64, sha256 17b0761f87b081d5', '3 x 2 float32, sha256 9d908ecfb6b256de')
    """
    n, *row = X.shape
    most = max(1, min(SAMPLED_ROWS, SAMPLED_VALUES // int(np.prod(row, dtype=np.int64)))) if sampled else n
    sample = np.ascontiguousarray(to_array(X, evenly_spaced_ids(n, most)))
    return f"{' x '.join(map(str, X.shape))} {sample.dtype}{HASH}{hashlib.sha256(sample.data).hexdigest()[:16]}"
