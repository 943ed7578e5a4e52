"""The Shepard diagram: all pairs of rows, counted by both of their distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from definitions import CASES
from scipy.spatial.distance import pdist

import dre.neighbors.distances
from dre.metrics import shepard_diagram


@pytest.mark.parametrize("block", [8, 10**9])
@pytest.mark.parametrize("name", ["normal", "an outlier", "far from the origin", "tiny", "three columns"])
def test_it_is_a_histogram_of_all_pairs_by_both_distances(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    X, Y, _ = CASES[name]
    high, low = pdist(X), pdist(Y)
    wanted, high_edges, low_edges = np.histogram2d(high, low, bins=13)
    found = shepard_diagram(X, Y, bins=13)
    assert np.array_equal(found.counts, wanted)
    assert found.high_edges == pytest.approx(high_edges, rel=1e-7)
    assert found.low_edges == pytest.approx(low_edges, rel=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_every_pair_is_counted_once(name: str) -> None:
    X, Y, _ = CASES[name]
    found = shepard_diagram(X, Y, bins=7)
    assert found.counts.shape == (7, 7)
    assert found.counts.sum() == len(X) * (len(X) - 1) // 2


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, True, None])
def test_bins_that_are_too_few_or_no_whole_number_are_an_error_that_names_the_range(bins: Any) -> None:
    X, Y, _ = CASES["normal"]
    with pytest.raises(ValueError, match=f"bins={bins!r}.*at least 2"):
        shepard_diagram(X, Y, bins=bins)
