"""DL projection: the network reproduces its teacher and stops early."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from torch.nn.functional import mse_loss

from dre.baselines.distillation import VALIDATION, Distillation, DLProjection, build_network, max_abs_scaling, to_unit_square
from dre.baselines.spectral import PCA
from dre.baselines.tsne import OpenTSNE
from dre.metrics import procrustes_distance
from dre.runtime import IsolatedRNG
from dre.training.loop import DivergedError

TSNE = OpenTSNE(perplexity=15, n_jobs=1, random_state=0)


@pytest.fixture(scope="module")
def tsne() -> None:
    """The library that does the teacher's work."""
    pytest.importorskip("openTSNE", reason="needs openTSNE, the extra `baselines`")


@pytest.fixture(scope="module")
def taught(digits, tsne) -> DLProjection:
    return DLProjection(TSNE, random_state=0, device="cpu").fit(digits.rows)


def test_the_network_reproduces_its_teacher(taught):
    learned, target = taught.embedding_, taught.teacher_embedding_
    for axis in range(2):
        assert np.corrcoef(learned[:, axis], target[:, axis])[0, 1] > 0.97
    assert procrustes_distance(learned, target) < 0.1
    assert procrustes_distance(learned, target[::-1]) > 0.5  # the rows of another map


def test_the_teacher_is_the_one_that_was_asked_for(taught, digits):
    np.testing.assert_array_equal(to_unit_square(TSNE.fit_transform(digits.rows)), taught.teacher_embedding_)
    assert not hasattr(taught.teacher, "embedding_") or taught.teacher_ is not taught.teacher


def test_maps_are_in_the_unit_square(taught, digits):
    np.testing.assert_allclose(taught.teacher_embedding_.min(0), 0)
    np.testing.assert_allclose(taught.teacher_embedding_.max(0), 1)
    Y = taught.transform(np.concatenate([digits.new, 255 - digits.new]))
    assert 0 <= Y.min() <= Y.max() <= 1


def test_transform_gives_the_rows_that_were_fitted_their_coordinates(taught, digits):
    np.testing.assert_array_equal(taught.transform(digits.rows), taught.embedding_)


def test_a_part_of_the_rows_is_taught_and_all_are_embedded(digits):
    model = DLProjection(PCA(), teacher_rows=50, epochs=60, random_state=0, device="cpu").fit(digits.rows)
    assert len(np.unique(model.teacher_indices_)) == len(model.teacher_embedding_) == len(model.teacher_.embedding_) == 50
    np.testing.assert_array_equal(
        to_unit_square(PCA().fit_transform(digits.rows[model.teacher_indices_])), model.teacher_embedding_
    )
    assert model.embedding_.shape == (200, 2)
    assert np.corrcoef(model.embedding_[model.teacher_indices_, 0], model.teacher_embedding_[:, 0])[0, 1] > 0.9


def test_the_seed_decides_which_rows_are_taught(digits):
    taught = [
        DLProjection(PCA(), teacher_rows=20, epochs=1, random_state=seed, device="cpu")
        .fit(digits.rows)
        .teacher_indices_.tolist()
        for seed in (0, 0, 1)
    ]
    assert taught[0] == taught[1] != taught[2]


def test_the_lesson_ends_when_the_rows_set_aside_no_longer_gain(digits):
    model = DLProjection(PCA(), epochs=500, patience=3, random_state=0, device="cpu").fit(digits.rows)
    errors = [record["validation"] for record in model.history_]
    assert len(errors) < 500
    assert min(errors[-3:]) > min(errors[:-3]) - 1e-5
    assert [record["epoch"] for record in model.history_] == list(range(len(errors)))


def test_the_weights_are_those_of_the_best_epoch():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(100, 5, generator=generator), torch.rand(100, 2, generator=generator)  # nothing to learn but by heart
    with IsolatedRNG(0, torch.device("cpu"))():
        network = build_network(5)
    history = Distillation(60, 10, 20).train(network, x, y, seed=1)
    errors = [record["validation"] for record in history]
    aside = torch.randperm(100, generator=torch.Generator().manual_seed(1))[: round(100 * VALIDATION)]
    with torch.no_grad():
        now = float(mse_loss(network(x[aside]), y[aside]))
    assert now == pytest.approx(min(errors), abs=1e-5)
    assert errors[-1] > now + 1e-3


def test_the_network_is_that_of_the_paper():
    layers = [layer for layer in build_network(30) if isinstance(layer, torch.nn.Linear)]
    assert [layer.out_features for layer in layers] == [256, 512, 256, 2]
    assert isinstance(build_network(30)[-1], torch.nn.Sigmoid)
    for layer in layers:
        bound = np.sqrt(6 / layer.in_features)  # He's
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert (layer.bias == 1e-4).all()


def test_rows_are_scaled_by_one_number_so_that_their_proportions_stay():
    rows = np.array([[0.0, 1e6], [4.0, 1e6], [8.0, 1e6 + 2]])
    scaled = max_abs_scaling(rows)(torch.from_numpy(rows)).numpy()
    assert np.abs(scaled).max() == 1
    assert np.ptp(scaled[:, 0]) == pytest.approx(4 * np.ptp(scaled[:, 1]))
    assert (max_abs_scaling(np.ones((3, 2)))(torch.ones(3, 2)) == 0).all()


class Elsewhere(BaseEstimator):
    """A teacher that looks at nothing."""

    def fit_transform(self, X, y=None):
        return np.random.default_rng(0).random((len(X), 2))


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_rows_whose_sums_overflow_are_an_error_that_says_what_to_do(digits):
    model = DLProjection(Elsewhere(), epochs=2, random_state=0, device="cpu")
    X = digits.rows.astype(np.float64)
    with pytest.raises(ValueError, match=r"too large for float64\. Divide X by a constant"):
        model.fit(X * 1e307)  # finite, but not their sum
    assert np.isfinite(model.fit(X / X.max()).embedding_).all()


def test_an_error_that_shows_in_the_rows_set_aside_alone_is_noticed_too():
    x, y = torch.rand(40, 5), torch.rand(40, 2)
    aside = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:2]
    x[aside] = torch.nan
    with pytest.raises(DivergedError, match="became nan in epoch 1"):
        Distillation(2, 10, 1).train(build_network(5), x, y, seed=1)


@pytest.mark.parametrize(("random_state", "seeded"), [(None, False), (0, True)])
def test_a_teacher_is_seeded_where_the_pupil_is(random_state, seeded):
    teacher = DLProjection("umap", random_state=random_state)._teacher(seed=5)
    assert (teacher.random_state == 5) if seeded else (teacher.random_state is None)


class Three(BaseEstimator):
    """A teacher with a map of three dimensions."""

    def fit_transform(self, X, y=None):
        return TruncatedSVD(3).fit_transform(X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"teacher": "tsme"}, ValueError, r"unknown teacher 'tsme'; known: tsne, umap. Did you mean 'tsne'\?"),
        ({"teacher": 3}, TypeError, "teacher=3: expected 'tsne', 'umap' or an estimator"),
        ({"teacher": Three()}, ValueError, r"shape \(200, 3\).*two columns"),
        ({"teacher_rows": 201}, ValueError, "teacher_rows=201.*200"),
        ({"teacher_rows": 0.5}, ValueError, r"teacher_rows=0\.5.*integer"),
        ({"epochs": 0}, ValueError, "epochs=0.*at least 1"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"patience": -1}, ValueError, "patience=-1"),
        ({"device": "gpu"}, ValueError, "device='gpu'"),
    ],
)
def test_what_can_not_be_is_refused(options, error, message, digits):
    with pytest.raises(error, match=message):
        DLProjection(**options).fit(digits.rows)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.usefixtures("tsne")
def test_a_gpu_learns_as_well(digits):
    model = DLProjection(TSNE, random_state=0, device="cuda").fit(digits.rows)
    assert procrustes_distance(model.embedding_, model.teacher_embedding_) < 0.1
