"""The trustworthiness by which a stage is judged: that of the metrics, on a sample of the rows."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness as by_sklearn
from torch import Tensor

from dre.data.subsample import evenly_spaced_ids
from dre.metrics import trustworthiness
from dre.training import trust
from dre.training.trust import sample_trust


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("n", "k"), [(5, 2), (20, 7), (200, 7), (200, 15), (900, 7)])
def test_of_all_rows_it_is_that_of_the_metrics(n: int, k: int) -> None:
    X = rows(n, 6)
    Y = X[:, :2] + 0.5 * rows(n, 2, 1)  # far from perfect
    value = sample_trust(X, Y, k=k)
    assert value == pytest.approx(trustworthiness(X.numpy(), Y.numpy(), k=k, device="cpu"), abs=1e-5)
    assert value == pytest.approx(by_sklearn(X.numpy(), Y.numpy(), n_neighbors=k), abs=1e-5)
    assert 0 < value < 1


def test_neighbors_far_from_the_origin_of_the_map_are_told_apart() -> None:
    X, Y = rows(300, 5), rows(300, 2, 1)
    assert sample_trust(X, Y + 1000.0) == pytest.approx(sample_trust(X, Y), abs=1e-3)


@pytest.mark.parametrize("n", [8, 100, 1500])
def test_a_perfect_map_has_one(n: int) -> None:
    X = rows(n, 2)
    assert sample_trust(X, X) == 1.0
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    assert sample_trust(X, 3 * X @ turn) == pytest.approx(1.0, abs=1e-4)


def test_a_random_map_has_about_one_half() -> None:
    X = torch.from_numpy(load_digits().data[:800]).float()
    assert sample_trust(X, rows(800, 2)) == pytest.approx(0.5, abs=0.05)
    assert sample_trust(X, X[:, :2]) < sample_trust(X, X)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 14])
def test_few_rows_have_fewer_neighbors(n: int) -> None:
    X = rows(n, 3)
    assert 0 <= sample_trust(X, rows(n, 2, 1)) <= 1
    assert sample_trust(X, X) == 1.0


@pytest.mark.parametrize(("references", "sample"), [(300, 300), (300, 40), (5000, 100)])
def test_of_many_rows_some_are_looked_at(references: int, sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows(1000, 6)
    Y = X[:, :2] + 0.1 * rows(1000, 2, 1)
    whole = sample_trust(X, Y)
    monkeypatch.setattr(trust, "REFERENCES", references)
    monkeypatch.setattr(trust, "SAMPLE", sample)
    assert sample_trust(X, Y) == pytest.approx(whole, abs=0.03)
    assert sample_trust(X, Y) == sample_trust(X, Y)  # the same rows each time
    assert sample_trust(X, X) == 1.0


def test_references_are_evenly_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = rows(1001, 4), rows(1001, 2, 1)
    monkeypatch.setattr(trust, "REFERENCES", 101)
    assert sample_trust(X, Y) == sample_trust(X[::10], Y[::10])


@pytest.mark.parametrize("n", [1, 2, 999, 1000, 1001, 2**24 + 5, 10**9])
def test_samples_lie_within_the_rows_from_the_first_to_the_last(n: int) -> None:
    ids = evenly_spaced_ids(n, 1000)
    assert (int(ids[0]), int(ids[-1])) == (0, n - 1)
    assert len(set(ids.tolist())) == len(ids) == min(n, 1000)


def test_it_changes_neither_rows_nor_map() -> None:
    X, Y = rows(50, 3), rows(50, 2, 1)
    before = X.clone(), Y.clone()
    sample_trust(X, Y)
    assert torch.equal(X, before[0])
    assert torch.equal(Y, before[1])
