"""Sparse rows: what is computed from them is what the dense rows give, without ever making them dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from dre import DRE
from dre.data.rows import HostRows
from dre.data.scaling import ScaledRows, Scaling
from dre.data.sparse import METRICS, ScaledSparse, is_sparse, moments
from dre.encoder.forward import outputs
from dre.encoder.mlp import MLP
from dre.encoder.network import Network
from dre.encoder.pca_front import PCAFront

CPU = torch.device("cpu")
N, D = 150, 40
EACH_METRIC = pytest.mark.parametrize("metric", METRICS)


def counts(n: int = N, d: int = D) -> np.ndarray:
    """Like words in documents of some topics: mostly zeros; one row is empty, one column too."""
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.3, size=(5, d))
    X = rng.poisson(topics[np.arange(n) % 5]).astype(np.float64)
    X[3], X[:, 7] = 0.0, 0.0
    return X


def scaled_rows(X: object, metric: str = "euclidean", *, standardize: bool = False) -> ScaledRows:
    return ScaledRows(HostRows(X), Scaling.fit(X, metric=metric, standardize=standardize), CPU)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_what_is_sparse() -> None:
    assert is_sparse(scipy.sparse.csr_array(counts()))
    assert is_sparse(scipy.sparse.csr_matrix(counts()))
    assert not is_sparse(counts())
    assert not is_sparse(None)


@EACH_METRIC
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8, bool])
def test_the_scaling_of_sparse_rows_is_that_of_dense_ones(metric: str, kind: type, dtype: type) -> None:
    X = counts().astype(dtype)
    ours, theirs = Scaling.fit(kind(X), metric=metric), Scaling.fit(X, metric=metric)
    torch.testing.assert_close(ours.mean, theirs.mean, rtol=1e-6, atol=1e-9)
    assert float(ours.scale) == pytest.approx(float(theirs.scale), rel=1e-6)
    assert ours.dominant_columns == theirs.dominant_columns


def test_a_column_that_outweighs_all_others_is_found() -> None:
    X = counts()
    X[:, 11] *= 1e4
    X[:5, 11] = 1e5
    ours, theirs = (Scaling.fit(rows).dominant_columns for rows in (scipy.sparse.csr_array(X), X))
    assert ours is not None
    assert theirs is not None
    assert ours.columns == theirs.columns == (11,)
    assert ours.share == pytest.approx(theirs.share)


@EACH_METRIC
def test_rows_without_any_value_have_a_scaling(metric: str) -> None:
    empty = scipy.sparse.csr_array((5, 4))
    found = moments(empty, metric)
    assert not found.mean.any()
    assert not found.squares.any()
    assert found.unit == 0
    assert float(Scaling.fit(empty, metric=metric).scale) == 1


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_squares_neither_overflow_nor_vanish(factor: float) -> None:
    X = factor * counts()
    here, there = Scaling.fit(scipy.sparse.csr_array(X)), Scaling.fit(X)
    assert float(here.scale) == pytest.approx(float(there.scale), rel=1e-6)


@EACH_METRIC
def test_products_are_those_of_the_scaled_rows(metric: str) -> None:
    rows = scaled_rows(scipy.sparse.csr_array(counts()), metric)
    dense = scaled_rows(counts(), metric).read(0, N).double()
    sparse = rows.sparse
    assert sparse is not None
    right, left = torch.randn(D, 3, generator=seeded()), torch.randn(N, 4, generator=seeded(1))
    torch.testing.assert_close(sparse.times(right, 20, 90), dense[20:90] @ right.double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(sparse.transposed_times(left), dense.T @ left.double(), rtol=1e-5, atol=1e-4)
    assert sparse.times(torch.eye(D), 0, N).mean(0).abs().max() < 1e-12  # the rows are centered


@EACH_METRIC
def test_the_rows_themselves_are_left_as_they_were(metric: str) -> None:
    X = scipy.sparse.csr_array(counts())
    before = X.copy()
    sparse = scaled_rows(X, metric).sparse
    assert isinstance(sparse, ScaledSparse)
    sparse.times(torch.ones(D, 2), 0, N)
    sparse.transposed_times(torch.ones(N, 2))
    assert (before != X).nnz == 0
    assert X.dtype == before.dtype


def test_rows_that_lose_their_zeros_are_read_as_dense_ones() -> None:
    X = scipy.sparse.csr_array(counts())
    assert scaled_rows(X).sparse is not None
    assert scaled_rows(X, "correlation").sparse is None
    assert scaled_rows(X, standardize=True).sparse is None
    assert scaled_rows(counts()).sparse is None


# Behind a front.


def fitted(X: object, n_pcs: int, metric: str = "euclidean") -> tuple[PCAFront, ScaledRows]:
    front, rows = PCAFront((D,), n_pcs), scaled_rows(X, metric)
    front.fit(rows, seeded())
    return front, rows


def distances(x: Tensor) -> Tensor:
    return torch.pdist(x.double())


@EACH_METRIC
@pytest.mark.parametrize("n_pcs", [1, 5, D])
def test_the_front_of_sparse_rows_projects_as_that_of_dense_ones(metric: str, n_pcs: int) -> None:
    x = scaled_rows(counts(), metric).read(0, N)
    (ours, _), (theirs, _) = fitted(scipy.sparse.csr_array(counts()), n_pcs, metric), fitted(counts(), n_pcs, metric)
    found, wanted = distances(ours(x)), distances(theirs(x))
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2 * float(wanted.mean()))
    assert ours(x).square().mean().sqrt().item() == pytest.approx(1, abs=1e-2)
    assert ours(x).mean(0).abs().max() < 1e-4


def test_the_front_keeps_as_much_of_the_variance_as_it_can() -> None:
    front, rows = fitted(scipy.sparse.csr_array(counts()), 5)
    x = rows.read(0, N).double()
    axes = torch.nn.functional.normalize(front.axes.double(), dim=1)
    best = torch.linalg.svdvals(x)[:5].square().sum()
    assert (x @ axes.T).square().sum() > 0.999 * best


def test_fewer_rows_than_components_leave_the_last_axes_empty() -> None:
    front = PCAFront((D,), 20)
    front.fit(scaled_rows(scipy.sparse.csr_array(counts()[10:16])), seeded())
    assert front.axes.isfinite().all()
    assert int(front.axes.any(1).sum()) == 5  # the mean is taken from six


def test_the_same_front_comes_out_every_time() -> None:
    (one, _), (two, _) = (fitted(scipy.sparse.csr_array(counts()), 5) for _ in range(2))
    assert torch.equal(one.axes, two.axes)


@pytest.mark.parametrize("source", [None, "features", "h1"])
def test_a_network_gives_the_same_for_sparse_and_dense_rows(source: str | None) -> None:
    network = MLP(8, n_pcs=6).build((D,), 2)
    assert isinstance(network, Network)
    assert isinstance(network.features, PCAFront)
    sparse, dense = scaled_rows(scipy.sparse.csr_array(counts())), scaled_rows(counts())
    network.features.fit(sparse, seeded())
    torch.testing.assert_close(outputs(network, sparse, source), outputs(network, dense, source), rtol=1e-4, atol=1e-5)
    few = outputs(network, sparse, source, limit=2)
    torch.testing.assert_close(few, outputs(network, dense, source)[:2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_never_makes_sparse_rows_dense_as_a_whole(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
        original = kind.toarray

        def watched(self: scipy.sparse.csr_array, *args: object, original=original, **options: object) -> np.ndarray:
            made.append(self.shape[0])
            return original(self, *args, **options)

        monkeypatch.setattr(kind, "toarray", watched)
    X = scipy.sparse.csr_array(counts(400, 150))
    schedule = "features: gaussian(10) -> kl * 2 from pca free 3 follow 2 against bank; features+h1: gaussian(10) -> kl * 1"
    settings = {"schedule": schedule, "encoder": "mlp(8, n_pcs=10)", "metric": metric, "random_state": 0, "device": "cpu"}
    model = DRE(**settings).fit(X)
    mapped = model.transform(X)
    assert sum(made) < 20, made
    np.testing.assert_array_equal(mapped, model.embedding_)
    dense = model.transform(X.todense())
    np.testing.assert_allclose(dense, mapped, atol=1e-3 * np.ptp(mapped))


def test_the_default_reads_components_of_wide_sparse_rows() -> None:
    X = scipy.sparse.csr_array(counts(200, 300))
    model = DRE(random_state=0, device="cpu").fit(X)
    assert model.recipe_.encoder.n_pcs
    labels = np.arange(200) % 5
    assert KNeighborsClassifier(5).fit(model.embedding_, labels).score(model.embedding_, labels) > 0.9
