"""t-SNE by other programs: the embeddings are those of their libraries, and FIt-SNE's phases are the authors'."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score

from dre.baselines import tsne as tsne_module
from dre.baselines.tsne import BarnesHutTSNE, FItSNE, OpenTSNE
from dre.data.validation import check_seed


def test_the_map_is_that_of_scikit_learn(digits):
    rows = digits.rows.reshape(200, -1).astype(np.float32)
    expected = TSNE(perplexity=12, max_iter=260, init="pca", random_state=check_seed(5)).fit_transform(rows)
    found = BarnesHutTSNE(perplexity=12, max_iter=260, random_state=5).fit_transform(digits.rows)
    np.testing.assert_array_equal(found, expected)


def test_too_few_rows_for_the_perplexity_are_refused(digits):
    with pytest.raises(ValueError, match="perplexity"):
        BarnesHutTSNE().fit(digits.rows[:20])


@pytest.fixture
def short_start(monkeypatch):
    """Fewer iterations of early exaggeration: a grid takes its time, however few the rows."""
    monkeypatch.setattr(tsne_module, "EARLY", (60, 12.0, 0.5))


def quick(exaggeration: float, **others: int) -> FItSNE:
    return FItSNE(
        exaggeration, perplexity=15, n_jobs=1, random_state=0, **{"start_late_exaggeration": 60, "n_iter": 150, **others}
    )


@pytest.mark.usefixtures("short_start")
def test_late_exaggeration_makes_clusters_tighter():
    X, clusters = make_blobs(150, 10, centers=5, cluster_std=2.0, random_state=0)
    plain, late = quick(1).fit_transform(X), quick(4).fit_transform(X)
    assert np.ptp(late) < 0.7 * np.ptp(plain)
    assert 1 - silhouette_score(late, clusters) < 0.5 * (1 - silhouette_score(plain, clusters))


@pytest.mark.usefixtures("short_start")
def test_without_exaggeration_the_start_of_its_phase_is_no_matter(digits):
    rows = digits.rows[:60]
    np.testing.assert_array_equal(
        quick(1, start_late_exaggeration=80, n_iter=100).fit_transform(rows), quick(1, n_iter=100).fit_transform(rows)
    )


def test_the_phases_follow_one_another():
    assert FItSNE().phases() == [(250, 12.0, 0.5), (500, 1.0, 0.8)]  # the authors' defaults
    assert FItSNE(4, start_late_exaggeration=600).phases() == [(250, 12.0, 0.5), (350, 1.0, 0.8), (150, 4, 0.8)]
    assert FItSNE(4, start_late_exaggeration=750).phases() == [(250, 12.0, 0.5), (500, 1.0, 0.8)]
    assert FItSNE(n_iter=250).phases() == [(250, 12.0, 0.5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_late_exaggeration": 200}, "start_late_exaggeration=200, n_iter=750"),
        ({"n_iter": 240}, "start_late_exaggeration=250, n_iter=240"),
        ({"exaggeration": 0}, "exaggeration=0: must be positive"),
    ],
)
def test_phases_that_can_not_be_are_refused(options, message, digits):
    with pytest.raises(ValueError, match=message):
        FItSNE(**options).fit(digits.rows)


@pytest.fixture(scope="module")
def lopsided() -> np.ndarray:
    """A large cloud and a small one: the mean of their map is not its middle."""
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(size=(180, 5)), random.normal(size=(20, 5)) + 30])


@pytest.fixture(scope="module")
def model(lopsided) -> OpenTSNE:
    return OpenTSNE(perplexity=10, n_iter=200, n_jobs=1, random_state=0).fit(lopsided)


def test_the_map_lies_around_its_middle_where_the_library_puts_it_when_it_embeds(model):
    Y = model.embedding_
    extent = np.ptp(Y, axis=0)
    assert (np.abs(Y.mean(0)) > 0.01 * extent).any()  # else there would be nothing to see here
    assert (np.abs(Y.max(0) + Y.min(0)) < 1e-5 * extent).all()


def test_rows_that_were_fitted_are_embedded_near_their_coordinates(model, lopsided):
    moved = np.linalg.norm(model.transform(lopsided) - model.embedding_, axis=1)
    assert np.median(moved) < 0.05 * np.ptp(model.embedding_)


def test_embedding_leaves_the_map_as_it_was(model, lopsided):
    before = np.array(model.model_)
    model.transform(lopsided[:7])
    np.testing.assert_array_equal(np.array(model.model_), before)
    assert model.model_.interp_coeffs is None


def test_a_row_is_embedded_alike_alone_and_in_company(model, lopsided):
    new = lopsided[:30] + 0.1
    np.testing.assert_allclose(model.transform(new[:1]), model.transform(new)[:1], atol=1e-4)


def test_approximate_neighbors_can_be_had_again():
    X = np.random.default_rng(0).normal(size=(1000, 4))  # from here on the library finds neighbors with random trees
    first, second = (OpenTSNE(perplexity=5, n_iter=1, n_jobs=1, random_state=1).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
