"""openTSNE: old and new rows share one map, which embedding leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from dre.baselines.open_tsne import OpenTSNE


@pytest.fixture(scope="module")
def lopsided() -> np.ndarray:
    """A large cloud and a small one: the mean of their map is not its middle."""
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(size=(180, 5)), random.normal(size=(20, 5)) + 30])


@pytest.fixture(scope="module")
def model(lopsided) -> OpenTSNE:
    return OpenTSNE(perplexity=10, n_iter=200, n_jobs=1, random_state=0).fit(lopsided)


def test_the_map_lies_around_its_middle_where_the_library_puts_it_when_it_embeds(model):
    places = model.embedding_
    extent = np.ptp(places, axis=0)
    assert (np.abs(places.mean(0)) > 0.01 * extent).any()  # else there would be nothing to see here
    assert (np.abs(places.max(0) + places.min(0)) < 1e-5 * extent).all()


def test_rows_that_were_fitted_are_embedded_near_their_places(model, lopsided):
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


def test_approximate_neighbours_can_be_had_again():
    X = np.random.default_rng(0).normal(size=(1000, 4))  # from here on the library finds neighbours with random trees
    first, second = (OpenTSNE(perplexity=5, n_iter=1, n_jobs=1, random_state=1).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
