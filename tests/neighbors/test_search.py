"""The nearest neighbours: exact ones against a float64 brute force, approximate ones against the recall they state."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor

import dre.neighbors.distances
import dre.neighbors.search
from dre.neighbors.search import nearest


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def brute_force(features: Tensor, k: int) -> tuple[Tensor, Tensor]:
    X = features.double()
    squared = (X[:, None] - X[None, :]).square().sum(2).fill_diagonal_(torch.inf)
    found = squared.sort(dim=1, stable=True)
    return found.indices[:, :k], found.values[:, :k].sqrt()


def sides(n: int) -> Tensor:
    return torch.tensor([1.0, -1.0]).repeat(n // 2)[:, None]


DATA = {
    "normal": torch.randn(500, 20, generator=seeded(0)),
    "one column": torch.randn(500, 1, generator=seeded(1)),
    "far from the origin": torch.randn(500, 20, generator=seeded(2)) + 1e3,
    "two clusters far from each other": torch.randn(500, 20, generator=seeded(3)) + 1e3 * sides(500),
    "tiny": 1e-8 * torch.randn(500, 5, generator=seeded(4)),
    "positive activations": torch.relu(torch.randn(500, 64, generator=seeded(5)) + 3),
}


@pytest.mark.parametrize("k", [1, 15, 90, 499])
@pytest.mark.parametrize("name", DATA)
def test_exact_is_the_float64_brute_force(name: str, k: int) -> None:
    indices, distances = brute_force(DATA[name], k)
    found = nearest(DATA[name], k, "exact")
    assert torch.equal(found.indices.sort(dim=1).values, indices.sort(dim=1).values)
    assert torch.allclose(found.distances.double(), distances, rtol=1e-5, atol=0)
    assert (found.distances.diff(dim=1) >= 0).all()


def test_exact_is_the_brute_force_on_digits_with_all_their_ties() -> None:
    X = torch.tensor(load_digits().data[:600].astype("float32"))
    _, distances = brute_force(X, 30)
    found = nearest(X, 30, "exact")
    assert torch.allclose(found.distances.double(), distances, rtol=1e-6)
    direct = (X[:, None] - X[found.indices]).double().square().sum(2).sqrt().float()
    assert torch.equal(found.distances, direct)
    assert torch.equal(found.indices, brute_force(X, 30)[0]), "ties are in the order of the rows"


@settings(max_examples=30, deadline=None)
@given(copies=st.integers(2, 40), k=st.integers(1, 30), offset=st.sampled_from([0.0, 1e3]), seed=st.integers(0, 2**31))
def test_a_row_is_never_its_own_neighbour_and_its_duplicates_come_first(copies: int, k: int, offset: float, seed: int) -> None:
    X = torch.randn(5, 3, generator=seeded(seed)).repeat(copies, 1) + offset
    k = min(k, len(X) - 1)
    found = nearest(X, k, "exact")
    assert (found.indices != torch.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == k for row in found.indices.tolist())
    assert (found.distances[:, : copies - 1] == 0).all()
    assert torch.allclose(found.distances.double(), brute_force(X, k)[1], rtol=1e-5)


@pytest.mark.parametrize("k", [10, 90])
@pytest.mark.parametrize("rows", [8, 104, 10**9])
def test_the_result_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch, rows: int, k: int) -> None:
    whole = nearest(DATA["normal"], k, "exact")
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": rows})
    assert torch.equal(nearest(DATA["normal"], k, "exact").indices, whole.indices)


@pytest.mark.parametrize("k", [0, -1, 5, 100])
def test_k_out_of_range_is_an_error_that_names_the_range(k: int) -> None:
    with pytest.raises(ValueError, match=rf"k={k} neighbours asked of 5 rows; k must be from 1 to 4"):
        nearest(torch.randn(5, 2), k)


def test_an_unknown_method_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="auto, exact, approximate"):
        nearest(torch.randn(5, 2), 1, "fast")


def test_the_input_is_left_as_it_was() -> None:
    X = DATA["far from the origin"].clone()
    nearest(X, 5, "exact")
    assert torch.equal(X, DATA["far from the origin"])


def test_small_data_are_searched_exactly() -> None:
    assert nearest(DATA["normal"], 5).method == "exact"
    assert nearest(DATA["normal"], 5).recall == 1.0


def test_without_faiss_large_data_are_searched_exactly_and_asking_for_more_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(dre.neighbors.search, "EXACT_UP_TO", 0)
    with pytest.warns(UserWarning, match=r"slow on a CPU: pip install .*faiss"):
        assert nearest(DATA["normal"], 5).method == "exact"
    with pytest.raises(ImportError, match=r"pip install .*faiss"):
        nearest(DATA["normal"], 5, "approximate")


class TestApproximate:
    """Needs faiss."""

    @pytest.fixture(autouse=True)
    def _faiss(self) -> None:
        pytest.importorskip("faiss", reason="faiss is an extra: pip install 'deep-recursive-embedding[faiss]'")

    @staticmethod
    def clustered(n: int = 4000) -> Tensor:
        rng = np.random.default_rng(0)
        centres = 4 * rng.normal(size=(25, 16))
        return torch.tensor(centres[rng.integers(25, size=n)] + rng.normal(size=(n, 16)), dtype=torch.float32)

    @pytest.mark.parametrize("k", [14, 90])
    def test_the_recall_is_what_is_stated(self, k: int) -> None:
        X = self.clustered()
        found, truth = nearest(X, k, "approximate"), nearest(X, k, "exact")
        hits = [len(set(a) & set(b)) / k for a, b in zip(found.indices.tolist(), truth.indices.tolist(), strict=True)]
        assert found.method == "approximate"
        assert np.mean(hits) >= found.recall - 0.03
        assert np.mean(hits) >= 0.9
        assert found.recall >= 0.95

    def test_others_only_nearest_first_at_their_true_distance(self) -> None:
        X = self.clustered(1000)
        found = nearest(X, 20, "approximate")
        assert (found.indices != torch.arange(1000)[:, None]).all()
        assert all(len(set(row)) == 20 for row in found.indices.tolist())
        assert (found.distances.diff(dim=1) >= 0).all()
        assert torch.allclose(found.distances, (X[:, None] - X[found.indices]).norm(dim=2), rtol=1e-4)

    def test_a_row_with_more_duplicates_than_neighbours_is_not_its_own(self) -> None:
        X = torch.cat([self.clustered(500), torch.ones(60, 16)])
        found = nearest(X, 10, "approximate")
        assert (found.indices != torch.arange(560)[:, None]).all()
        assert (found.indices >= 0).all()
        assert (found.distances[500:] == 0).all()

    def test_cells_with_too_few_rows_are_searched_exactly(self) -> None:
        X = self.clustered(200)
        found = nearest(X, 150, "approximate")
        assert found.distances.isfinite().all()
        assert (found.indices != torch.arange(200)[:, None]).all()
        assert all(len(set(row)) == 150 for row in found.indices.tolist())

    def test_it_is_the_same_every_time(self) -> None:
        X = self.clustered(1500)
        once, again = nearest(X, 10, "approximate"), nearest(X, 10, "approximate")
        assert torch.equal(once.indices, again.indices)
        assert torch.equal(once.distances, again.distances)
        assert once.recall == again.recall

    def test_it_is_chosen_where_the_exact_search_would_take_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dre.neighbors.search, "EXACT_UP_TO", 0)
        assert nearest(self.clustered(500), 10).method == "approximate"


def test_exact_is_the_same_every_time() -> None:
    once, again = nearest(DATA["normal"], 15, "exact"), nearest(DATA["normal"], 15, "exact")
    assert torch.equal(once.indices, again.indices)
    assert torch.equal(once.distances, again.distances)


def test_among_duplicates_any_of_them_counts_as_found() -> None:
    pytest.importorskip("faiss", reason="approximate neighbours need faiss")
    rows = torch.cat([torch.zeros(2000, 8), torch.randn(2000, 8, generator=torch.Generator().manual_seed(0))])
    assert nearest(rows, 20, "approximate").recall >= 0.95
