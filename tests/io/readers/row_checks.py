"""What all rows of files must do."""

from __future__ import annotations

import numpy as np
import torch

from dre.data.rows import is_rows

ORDER = [7, 0, 3, 3, 11, 7, 0, 1]  # any order, with repeats


def same_rows(rows, expected):
    """Read in any pieces, or taken in any order, they are those that were written."""
    n = len(expected)
    assert tuple(rows.shape) == expected.shape
    assert is_rows(rows)
    for start, stop in [(0, n), (0, 1), (2, 9), (n - 1, n), (5, 5)]:
        np.testing.assert_array_equal(rows.read(start, stop).numpy(), expected[start:stop])
    for ids in (ORDER, list(range(n))[::-1], [n - 1], []):
        wanted = torch.tensor(ids, dtype=torch.int64)
        np.testing.assert_array_equal(rows.take(wanted).numpy(), expected[ids].reshape(len(ids), *expected.shape[1:]))
