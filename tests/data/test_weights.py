"""Weights of rows: what is refused, and how often a row is repeated."""

from __future__ import annotations

import numpy as np
import pytest

from dre.data.weights import check_weights, repeated_ids


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ([1.0, 1.0], "one number for each row"),
        ([[1.0], [1.0], [1.0]], "1D array"),
        ([1.0, -1.0, 2.0], "row 1 is -1.0"),
        ([1.0, np.nan, 2.0], "row 1 is nan"),
        ([0.0, 0.0, 0.0], "all weights are zero"),
        ([0.1, 0.1, 0.1], "Multiply"),
        ([1e6, 1.0, 1.0], "Divide"),
        (["a", "b", "c"], "not numbers"),
    ],
)
def test_weights_that_are_refused_name_the_remedy(weights: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_weights(weights, n=3)


def test_the_expected_number_of_copies_is_the_weight() -> None:
    weights = np.full(20_000, 1.3)
    copies = np.bincount(repeated_ids(weights, seed=0), minlength=len(weights))
    assert set(np.unique(copies)) == {1, 2}
    assert abs(copies.mean() - 1.3) < 0.02


def test_whole_weights_are_not_rounded() -> None:
    weights = np.array([2.0, 0.0, 1.0, 5.0])
    for seed in range(5):
        assert np.array_equal(np.bincount(repeated_ids(weights, seed), minlength=4), weights)
