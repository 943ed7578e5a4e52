"""t-SNE's P: equal to scikit-learn's on the same neighbors, and right where scikit-learn's search gives up."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.manifold._t_sne import _joint_probabilities_nn

from dre import Gaussian
from dre.affinity.target import Graph, InBatch
from dre.neighbors.search import nearest

DIGITS = load_digits().data[:700].astype("float32")
RANDOM = np.random.default_rng(0)
DATA = {
    "digits": DIGITS,
    "standardized digits": ((DIGITS - DIGITS.mean(0)) / DIGITS.std()).astype("float32"),
    "normal": RANDOM.normal(size=(400, 10)).astype("float32"),
    "heavy tails": RANDOM.standard_cauchy(size=(400, 5)).astype("float32"),
    "triplicates": np.repeat(RANDOM.normal(size=(130, 5)), 3, axis=0).astype("float32"),
}


def perplexities(weights: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.xlogy(weights, weights).sum(1))


@pytest.mark.parametrize("perplexity", [5, 30, 50])
@pytest.mark.parametrize("name", DATA)
def test_p_is_scikit_learns_on_the_same_neighbors(name: str, perplexity: float) -> None:
    X, affinity = torch.tensor(DATA[name]), Gaussian(perplexity)
    n = len(X)
    neighbors = nearest(X, affinity.count_neighbors(n))
    squared = neighbors.distances.numpy() ** 2
    k = squared.shape[1]
    graph = csr_matrix((squared.ravel(), neighbors.indices.numpy().ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    expected = _joint_probabilities_nn(graph, perplexity, 0).toarray()

    found = Graph.of(affinity, neighbors).block(torch.arange(n)).dense(n).double().numpy()
    found /= found.sum()

    assert np.array_equal(found > 0, expected > 0)
    present = expected > 0
    assert np.abs(found[present] / expected[present] - 1).max() <= 1e-4


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(-6, 6).map(lambda e: 10.0**e),
    spread=st.floats(0.01, 4),
    k=st.integers(3, 150),
    part=st.floats(0.02, 0.98),
    seed=st.integers(0, 2**31),
)
def test_perplexity_is_hit_in_every_row_at_any_scale(scale: float, spread: float, k: int, part: float, seed: int) -> None:
    perplexity = 1 + part * (k - 1)
    noise = torch.randn(20, k, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    distances = (scale * (spread * noise).exp()).sort(dim=1).values.float()
    weights = Gaussian(perplexity).conditional(distances)
    assert torch.allclose(weights.sum(1), torch.ones(20, dtype=torch.double))
    assert (perplexities(weights) - perplexity).abs().max() <= 1e-3


@pytest.mark.parametrize("perplexity", [2, 30, 100, 400])
def test_perplexity_is_hit_in_every_row_of_real_data(perplexity: float) -> None:
    X = torch.tensor(DIGITS)
    weights = Gaussian(perplexity).conditional(nearest(X, min(len(X) - 1, 3 * perplexity)).distances)
    assert (perplexities(weights) - perplexity).abs().max() <= 1e-3


def test_perplexity_is_hit_beside_an_outlier_that_is_a_million_millions_away() -> None:
    distances = torch.cat([torch.linspace(1, 2, 20), torch.tensor([1e12])])[None, :]
    assert perplexities(Gaussian(7).conditional(distances)).item() == pytest.approx(7, abs=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    ties=st.integers(2, 20),
    others=st.integers(0, 20),
    smallest=st.sampled_from([0.0, 1e-6, 1.0, 33.3, 1e6]),
    part=st.floats(0, 0.95),
)
def test_ties_beyond_the_perplexity_share_the_row_alone(ties: int, others: int, smallest: float, part: float) -> None:
    perplexity = 1 + part * (ties - 1)
    far = (smallest or 1.0) * torch.linspace(1.01, 3, others)
    distances = torch.cat([torch.full((ties,), smallest), far])[None, :]
    weights = Gaussian(perplexity).conditional(distances)[0]
    assert torch.allclose(weights[:ties], torch.full((ties,), 1 / ties, dtype=torch.double))
    assert weights[ties:].abs().sum() <= 1e-12


def test_an_unattainably_large_perplexity_gives_a_uniform_row() -> None:
    weights = Gaussian(10).conditional(torch.linspace(1, 2, 6)[None, :])
    assert torch.allclose(weights, torch.full((1, 6), 1 / 6, dtype=torch.double))


def test_a_perplexity_too_large_for_the_rows_is_adapted_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"perplexity 30 is too large for 31 rows; 10 is used"):
        fitted = Gaussian(30, scope="batch").clamp_to(31)
    assert fitted == Gaussian(10.0, scope="batch")


@given(n=st.integers(2, 400), perplexity=st.floats(1, 300))
def test_what_is_fitted_can_be_reached_by_the_neighbors_there_are(n: int, perplexity: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = Gaussian(perplexity).clamp_to(n)
    assert fitted.perplexity <= max(1, fitted.count_neighbors(n))
    assert 1 <= fitted.count_neighbors(n) <= n - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.clamp_to(n) is fitted
        assert perplexity > fitted.perplexity or fitted == Gaussian(perplexity)


def direct_p(X: np.ndarray, perplexity: float) -> np.ndarray:
    """The definition in float64 over all pairs, row by row."""
    n = len(X)
    conditional = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        squared = np.array([sum((X[i, c] - X[j, c]) ** 2 for c in range(X.shape[1])) for j in others])
        low, high = 0.0, 1e9
        for _ in range(200):
            beta = (low + high) / 2
            w = np.exp(-beta * (squared - squared.min()))
            p = w / w.sum()
            entropy = -sum(v * math.log(v) for v in p if v > 0)
            low, high = (beta, high) if entropy > math.log(perplexity) else (low, beta)
        conditional[i, others] = p
    return (conditional + conditional.T) / (2 * n)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_over_the_batch_all_other_rows_count_as_in_a_direct_double_loop(offset: float) -> None:
    X = (DATA["standardized digits"][:60] + offset).astype("float32")
    P = direct_p(X.astype("float64"), 8)
    pairs = InBatch(Gaussian(8, scope="batch"), torch.tensor(X)).block(torch.arange(60))
    found = pairs.dense(60).double().numpy()
    found /= found.sum()
    assert (found > 0).sum() == 60 * 59
    assert np.abs(found / np.where(P > 0, P, 1) - 1)[P > 0].max() <= 1e-3  # both stop their search, at different places
    assert np.abs(found - P).sum() <= 1e-4


@pytest.mark.parametrize("perplexity", [0.5, -1, math.inf, math.nan])
def test_a_perplexity_below_one_or_without_end_is_refused(perplexity: float) -> None:
    with pytest.raises(ValueError, match="perplexity"):
        Gaussian(perplexity)
