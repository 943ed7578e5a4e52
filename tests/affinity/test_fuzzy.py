"""UMAP's V: equal to UMAP's own fuzzy simplicial set on the same neighbors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from dre import Fuzzy
from dre.affinity.target import Graph
from dre.neighbors.search import Neighbors, nearest

DIGITS = load_digits().data[:700].astype("float32")
RANDOM = np.random.default_rng(0)
DATA = {
    "digits": DIGITS,
    "normal": RANDOM.normal(size=(400, 10)).astype("float32"),
    "tiny": (1e-4 * RANDOM.normal(size=(400, 10))).astype("float32"),
    "huge": (1e4 * RANDOM.normal(size=(400, 3))).astype("float32"),
    "pairs": np.repeat(RANDOM.normal(size=(200, 5)), 2, axis=0).astype("float32"),
    "digits, twenty of them equal": np.concatenate([DIGITS[:300], np.repeat(DIGITS[5:6], 20, axis=0)]),
}
SMALLEST_NORMAL = float(np.finfo("float32").tiny)


def umap_v(X: np.ndarray, neighbors: Neighbors) -> np.ndarray:
    """V as UMAP computes it; its arrays hold the row itself in the first column."""
    from umap.umap_ import fuzzy_simplicial_set

    n, k = neighbors.indices.shape
    indices = np.column_stack([np.arange(n), neighbors.indices.numpy()])
    distances = np.column_stack([np.zeros(n), neighbors.distances.numpy()]).astype("float32")
    V, _, _ = fuzzy_simplicial_set(
        X, k + 1, np.random.RandomState(0), "euclidean", knn_indices=indices, knn_dists=distances
    )  # k + 1: n_neighbors counts the row itself
    return V.toarray()


@pytest.mark.parametrize("n_neighbors", [5, 15, 30])
@pytest.mark.parametrize("name", DATA)
def test_v_is_umaps_on_the_same_neighbors(name: str, n_neighbors: int) -> None:
    X, affinity = DATA[name], Fuzzy(n_neighbors)
    n = len(X)
    neighbors = nearest(torch.tensor(X), affinity.count_neighbors(n))
    expected = umap_v(X, neighbors)
    found = Graph.of(affinity, neighbors).block(torch.arange(n)).dense(n).numpy()

    assert np.array_equal(found > 0, expected > 0)
    present = expected >= SMALLEST_NORMAL  # below it float32 has no relative precision
    assert present.sum() > 0.95 * (expected > 0).sum()
    assert np.abs(found[present].astype("float64") / expected[present] - 1).max() <= 1e-4


@pytest.mark.parametrize("n", [3, 15, 400])
def test_n_neighbors_counts_the_row_itself(n: int) -> None:
    assert Fuzzy(15).count_neighbors(n) == min(n, 15) - 1


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(-6, 6).map(lambda e: 10.0**e),
    spread=st.floats(0.05, 1),
    n_neighbors=st.integers(3, 60),
    seed=st.integers(0, 2**31),
)
def test_the_memberships_of_a_row_sum_to_log2_of_n_neighbors_at_any_scale(
    scale: float, spread: float, n_neighbors: int, seed: int
) -> None:
    noise = torch.randn(20, n_neighbors - 1, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    distances = (scale * (spread * noise).exp()).sort(dim=1).values.float()
    v = Fuzzy(n_neighbors).conditional(distances)
    # UMAP's floor under the bandwidth may raise the sum, where the row is all but at one distance
    floored = (v.sum(1) > math.log2(n_neighbors) + 2e-5) & (distances[:, -1] - distances[:, 0] < 0.05 * distances[:, 0])
    assert ((v.sum(1) - math.log2(n_neighbors)).abs() <= 2e-5).logical_or(floored).all()
    assert (v[:, 0] == 1).all()
    assert (v.diff(dim=1) <= 0).all()


def test_memberships_sum_to_log2_of_n_neighbors_on_real_data() -> None:
    v = Fuzzy(15).conditional(nearest(torch.tensor(DIGITS), 14).distances)
    assert (v.sum(1) - math.log2(15)).abs().max() <= 2e-5


def test_duplicates_and_the_nearest_other_row_are_full_members() -> None:
    v = Fuzzy(12).conditional(torch.tensor([[0.0, 0.0, *range(2, 11)], [0.0] * 11]))
    assert v[0, :3].tolist() == [1, 1, 1]
    assert 0 < v[0, 4] < v[0, 3] < 1
    assert v[1].tolist() == [1] * 11


@given(forward=st.floats(0, 1), backward=st.floats(0, 1))
def test_either_direction_alone_makes_a_pair_and_no_membership_exceeds_one(forward: float, backward: float) -> None:
    v = Fuzzy().combine(torch.tensor(forward, dtype=torch.double), torch.tensor(backward, dtype=torch.double)).item()
    assert max(forward, backward) - 1e-15 <= v <= 1 + 1e-15
    assert v == pytest.approx(1 - (1 - forward) * (1 - backward), abs=1e-15)


def test_too_many_neighbors_for_the_rows_are_adapted_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"n_neighbors 15 is too large for 10 rows; 10 is used"):
        fitted = Fuzzy(15, scope="batch").clamp_to(10)
    assert fitted == Fuzzy(10, scope="batch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.clamp_to(10) is fitted


@pytest.mark.parametrize("n_neighbors", [1, 0, -3, 15.5])
def test_n_neighbors_below_two_or_broken_is_refused(n_neighbors: float) -> None:
    with pytest.raises(ValueError, match="n_neighbors"):
        Fuzzy(n_neighbors)  # type: ignore[arg-type]
