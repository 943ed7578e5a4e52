"""Neighbor search: exact against a float64 brute force and scipy, approximate against its reported recall."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from torch import Tensor

import dre.neighbors.distances
import dre.neighbors.search
from dre.data.rows import HostRows, chunk_length
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
    found = nearest(DATA[name], k, method="exact")
    assert torch.equal(found.indices.sort(dim=1).values, indices.sort(dim=1).values)
    assert torch.allclose(found.distances.double(), distances, rtol=1e-5, atol=0)
    assert (found.distances.diff(dim=1) >= 0).all()


def test_exact_is_the_brute_force_on_digits_with_all_their_ties() -> None:
    X = torch.tensor(load_digits().data[:600].astype("float32"))
    _, distances = brute_force(X, 30)
    found = nearest(X, 30, method="exact")
    assert torch.allclose(found.distances.double(), distances, rtol=1e-6)
    direct = (X[:, None] - X[found.indices]).double().square().sum(2).sqrt().float()
    assert torch.equal(found.distances, direct)
    assert torch.equal(found.indices, brute_force(X, 30)[0]), "ties are in the order of the rows"


@settings(max_examples=30, deadline=None)
@given(copies=st.integers(2, 40), k=st.integers(1, 30), offset=st.sampled_from([0.0, 1e3]), seed=st.integers(0, 2**31))
def test_a_row_is_never_its_own_neighbor_and_its_duplicates_come_first(copies: int, k: int, offset: float, seed: int) -> None:
    X = torch.randn(5, 3, generator=seeded(seed)).repeat(copies, 1) + offset
    k = min(k, len(X) - 1)
    found = nearest(X, k, method="exact")
    assert (found.indices != torch.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == k for row in found.indices.tolist())
    assert (found.distances[:, : copies - 1] == 0).all()
    assert torch.allclose(found.distances.double(), brute_force(X, k)[1], rtol=1e-5)


@pytest.mark.parametrize("k", [10, 90])
@pytest.mark.parametrize("rows", [8, 104, 10**9])
def test_the_result_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch, rows: int, k: int) -> None:
    whole = nearest(DATA["normal"], k, method="exact")
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": rows})
    assert torch.equal(nearest(DATA["normal"], k, method="exact").indices, whole.indices)


@pytest.mark.parametrize("k", [0, -1, 5, 100])
def test_k_out_of_range_is_an_error_that_names_the_range(k: int) -> None:
    with pytest.raises(ValueError, match=rf"k={k} .*5 rows.*from 1 to 4"):
        nearest(torch.randn(5, 2), k)


def test_an_unknown_method_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="auto, exact, approximate"):
        nearest(torch.randn(5, 2), 1, method="fast")


def test_the_input_is_left_as_it_was() -> None:
    X = DATA["far from the origin"].clone()
    nearest(X, 5, method="exact")
    assert torch.equal(X, DATA["far from the origin"])


def test_small_data_are_searched_exactly() -> None:
    assert nearest(DATA["normal"], 5).method == "exact"
    assert nearest(DATA["normal"], 5).recall == 1.0


def test_without_faiss_large_data_are_searched_exactly_and_asking_for_more_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(dre.neighbors.search, "EXACT_UP_TO", 0)
    with pytest.warns(UserWarning, match=r"slow on a CPU.*pip install .*faiss"):
        assert nearest(DATA["normal"], 5).method == "exact"
    with pytest.raises(ImportError, match=r"pip install .*faiss"):
        nearest(DATA["normal"], 5, method="approximate")


class TestApproximate:
    """Needs faiss."""

    @pytest.fixture(autouse=True)
    def _faiss(self) -> None:
        pytest.importorskip("faiss", reason="faiss is an extra: pip install 'deep-recursive-embedding[faiss]'")

    @staticmethod
    def clustered(n: int = 4000) -> Tensor:
        rng = np.random.default_rng(0)
        centers = 4 * rng.normal(size=(25, 16))
        return torch.tensor(centers[rng.integers(25, size=n)] + rng.normal(size=(n, 16)), dtype=torch.float32)

    @pytest.mark.parametrize("k", [14, 90])
    def test_the_recall_is_what_is_stated(self, k: int) -> None:
        X = self.clustered()
        found, truth = nearest(X, k, method="approximate"), nearest(X, k, method="exact")
        hits = [len(set(a) & set(b)) / k for a, b in zip(found.indices.tolist(), truth.indices.tolist(), strict=True)]
        assert found.method == "approximate"
        assert np.mean(hits) >= found.recall - 0.03
        assert np.mean(hits) >= 0.9
        assert found.recall >= 0.95

    def test_others_only_nearest_first_at_their_true_distance(self) -> None:
        X = self.clustered(1000)
        found = nearest(X, 20, method="approximate")
        assert (found.indices != torch.arange(1000)[:, None]).all()
        assert all(len(set(row)) == 20 for row in found.indices.tolist())
        assert (found.distances.diff(dim=1) >= 0).all()
        assert torch.allclose(found.distances, (X[:, None] - X[found.indices]).norm(dim=2), rtol=1e-4)

    def test_a_row_with_more_duplicates_than_neighbors_is_not_its_own(self) -> None:
        X = torch.cat([self.clustered(500), torch.ones(60, 16)])
        found = nearest(X, 10, method="approximate")
        assert (found.indices != torch.arange(560)[:, None]).all()
        assert (found.indices >= 0).all()
        assert (found.distances[500:] == 0).all()

    def test_cells_with_too_few_rows_are_searched_exactly(self) -> None:
        X = self.clustered(200)
        found = nearest(X, 150, method="approximate")
        assert found.distances.isfinite().all()
        assert (found.indices != torch.arange(200)[:, None]).all()
        assert all(len(set(row)) == 150 for row in found.indices.tolist())

    def test_it_is_the_same_every_time(self) -> None:
        X = self.clustered(1500)
        once, again = nearest(X, 10, method="approximate"), nearest(X, 10, method="approximate")
        assert torch.equal(once.indices, again.indices)
        assert torch.equal(once.distances, again.distances)
        assert once.recall == again.recall

    def test_it_is_chosen_where_the_exact_search_would_take_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dre.neighbors.search, "EXACT_UP_TO", 0)
        assert nearest(self.clustered(500), 10).method == "approximate"


def test_exact_is_the_same_every_time() -> None:
    once, again = nearest(DATA["normal"], 15, method="exact"), nearest(DATA["normal"], 15, method="exact")
    assert torch.equal(once.indices, again.indices)
    assert torch.equal(once.distances, again.distances)


def test_among_duplicates_any_of_them_counts_as_found() -> None:
    pytest.importorskip("faiss", reason="approximate neighbors need faiss")
    rows = torch.cat([torch.zeros(2000, 8), torch.randn(2000, 8, generator=torch.Generator().manual_seed(0))])
    assert nearest(rows, 20, method="approximate").recall >= 0.95


# Metrics and streams.


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.double, 1e-12), (torch.float32, 1e-6)])
def test_distances_are_those_of_scipy_under_the_same_metric(metric: str, dtype: torch.dtype, tolerance: float) -> None:
    X = torch.randn(200, 12, generator=seeded(11), dtype=dtype) + 0.5
    expected = torch.from_numpy(cdist(X.double(), X.double(), metric)).fill_diagonal_(torch.inf).sort(dim=1)
    found = nearest(X, 20, metric=metric)
    assert found.distances.dtype == dtype
    assert torch.equal(found.indices, expected.indices[:, :20])
    torch.testing.assert_close(found.distances.double(), expected.values[:, :20], rtol=tolerance, atol=tolerance)


def test_euclidean_is_the_default_to_the_bit() -> None:
    assert torch.equal(nearest(DATA["normal"], 9).distances, nearest(DATA["normal"], 9, metric="euclidean").distances)


def test_an_approximate_search_has_the_distances_of_the_metric() -> None:
    pytest.importorskip("faiss", reason="approximate neighbors need faiss")
    X = TestApproximate.clustered(500)
    found = nearest(X, 5, metric="cosine", method="approximate")
    expected = torch.from_numpy(cdist(X.double(), X.double(), "cosine")).gather(1, found.indices)
    torch.testing.assert_close(found.distances.double(), expected, rtol=1e-4, atol=1e-6)


def test_integers_have_angles_too() -> None:
    X = torch.tensor([[1, 0], [5, 0], [0, 2]])
    found = nearest(X, 1, metric="cosine")
    assert found.indices.ravel().tolist() == [1, 0, 0]
    assert found.distances.ravel().tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"euclidean, cosine, correlation.*Did you mean 'cosine'"):
        nearest(torch.randn(5, 2), 1, metric="cosin")


class Stream:
    """Rows that note the size of every piece they are asked for."""

    def __init__(self, X: Tensor) -> None:
        self.shape = tuple(X.shape)
        self.sizes: list[int] = []
        self._X = X

    def read(self, start: int, stop: int) -> Tensor:
        self.sizes.append(stop - start)
        return self._X[start:stop]

    def take(self, ids: Tensor) -> Tensor:
        raise AssertionError("a search reads rows in order")


@pytest.mark.parametrize("values", [1, 50, 10**9])
@pytest.mark.parametrize("shape", [(12,), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_a_stream_gives_what_the_array_gives_and_is_read_in_pieces(
    monkeypatch: pytest.MonkeyPatch, metric: str, shape: tuple[int, ...], values: int
) -> None:
    X = torch.randn(90, 12, generator=seeded(12))
    whole = nearest(X, 7, metric=metric)
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", values)
    stream = Stream(X.reshape(90, *shape))
    found = nearest(stream, 7, metric=metric)
    assert torch.equal(found.indices, whole.indices)
    torch.testing.assert_close(found.distances, whole.distances, rtol=1e-6, atol=1e-7)
    assert max(stream.sizes) <= chunk_length(shape)
    assert sum(stream.sizes) == 90


def test_a_stream_of_bytes_is_searched_too() -> None:
    X = np.random.default_rng(0).integers(0, 255, (60, 5), dtype=np.uint8)
    for metric in ("euclidean", "cosine"):
        found = nearest(HostRows(X), 4, metric=metric)
        expected = torch.from_numpy(cdist(X.astype(float), X.astype(float), metric)).fill_diagonal_(torch.inf)
        torch.testing.assert_close(found.distances.double(), expected.sort(dim=1).values[:, :4], rtol=1e-6, atol=1e-6)


def test_a_stream_with_nan_is_refused_by_row() -> None:
    X = torch.randn(20, 3)
    X[13, 1] = torch.nan
    with pytest.raises(ValueError, match=r"NaN.*row 13"):
        nearest(Stream(X), 2)
