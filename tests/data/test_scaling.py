"""Scaling: one number for all values, or one for each column; metrics as transforms; what outweighs all others is named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from scipy.spatial.distance import cdist

from dre import DRE
from dre.data.metric import TRANSFORMS, transform_rows
from dre.data.scaling import Scaling

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, size=(60, 6))


def scaled(X: np.ndarray, **options: object) -> np.ndarray:
    return Scaling.fit(X, **options)(torch.from_numpy(X)).numpy()


# One number for all values.


def test_rows_are_centered_and_have_a_standard_deviation_of_one_in_all(X):
    Z = scaled(X * [1, 1, 1, 1, 1, 9])
    np.testing.assert_allclose(Z.mean(0), 0, atol=1e-6)
    assert Z.std() == pytest.approx(1, abs=1e-6)
    ratio = cdist(Z, Z) / np.maximum(cdist(X * [1, 1, 1, 1, 1, 9], X * [1, 1, 1, 1, 1, 9]), 1e-12)
    off_diagonal = ratio[~np.eye(len(X), dtype=bool)]
    assert np.ptp(off_diagonal) < 1e-5 * off_diagonal.mean()


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e150])
def test_squares_that_would_overflow_or_vanish_make_no_difference(X, size):
    np.testing.assert_allclose(scaled(X * size), scaled(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scaled(X * size, standardize=True), scaled(X, standardize=True), rtol=1e-5, atol=1e-6)


def test_constant_rows_become_zero():
    assert not scaled(np.full((5, 3), 7.0)).any()
    assert not scaled(np.full((5, 3), 0.1), standardize=True).any()  # 0.1 has rounding in its mean


# One number for each column.


def test_standardized_columns_have_a_standard_deviation_of_one(X):
    units = np.array([1e-6, 1, 1e6, 3, 50, 1])
    np.testing.assert_allclose(scaled(X * units, standardize=True), scaled(X, standardize=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scaled(X * units, standardize=True).std(0), 1, rtol=1e-4)


def test_units_do_not_change_a_standardized_map(X):
    units = 2.0 ** np.arange(-6, 6, 2)  # powers of two: the same bits
    np.testing.assert_array_equal(cheap(standardize=True).fit_transform(X), cheap(standardize=True).fit_transform(X * units))


def test_a_standardized_model_is_saved_with_its_columns(X, tmp_path):
    model = cheap(standardize=True, metric="correlation").fit(X)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(DRE.load(tmp_path / "model").transform(X), model.embedding_)


# What outweighs all others.


def test_a_column_that_makes_up_most_of_all_distances_is_named_with_the_remedy(X):
    frame = pd.DataFrame(X * [1, 1, 1, 40, 1, 1], columns=list("abcdef"))
    with pytest.warns(UserWarning, match=r"'d'.*9\d %.*standardize=True"):
        cheap().fit(frame)
    with pytest.warns(UserWarning, match=r"column 3 .*standardize=True"):
        cheap().fit(frame.to_numpy())


@pytest.mark.parametrize("change", ["alike", "standardized", "one column", "images"])
def test_where_no_column_outweighs_the_others_nothing_is_said(X, change):
    rows = {"one column": X[:, :1], "images": X.reshape(60, 2, 3) * [1, 1, 99]}.get(change, X)
    options = {"standardize": True} if change == "standardized" else {}
    rows = rows * [1, 1, 1, 99, 1, 1] if change == "standardized" else rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cheap(**options).fit(rows)


# Metrics.


@pytest.mark.parametrize("metric", TRANSFORMS)
def test_transformed_rows_have_the_distances_of_the_metric(metric, X):
    Z = transform_rows(torch.from_numpy(X), metric).numpy()
    d, wanted = cdist(Z, Z), cdist(X, X, metric)
    np.testing.assert_allclose(d if metric == "euclidean" else d**2 / 2, wanted, atol=1e-12)


def test_the_length_of_a_row_does_not_matter_to_cosine(X):
    lengths = 2.0 ** np.random.default_rng(1).integers(-8, 8, (60, 1))
    np.testing.assert_array_equal(cheap(metric="cosine").fit_transform(X), cheap(metric="cosine").fit_transform(X * lengths))


def test_the_level_of_a_row_does_not_matter_to_correlation(X):
    levels = np.random.default_rng(1).normal(size=(60, 1))
    one, other = (cheap(metric="correlation").fit_transform(rows) for rows in (X, X + levels))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_centering_does_not_change_what_cosine_means(X):
    """Angles are those at the origin of the rows as given, not at their mean."""
    model = cheap(metric="cosine").fit(X + 100)
    moved = cheap(metric="cosine").fit(X)
    assert not np.allclose(model.embedding_, moved.embedding_, atol=1e-2)
    Z = Scaling.fit(X + 100, metric="cosine")(torch.from_numpy(X + 100)).numpy()
    order, wanted = cdist(Z, Z).argsort(1), cdist(X + 100, X + 100, "cosine").argsort(1)
    assert (order[:, 1:6] == wanted[:, 1:6]).mean() > 0.99


@pytest.mark.parametrize("metric", TRANSFORMS)
def test_sparse_rows_and_zero_rows_are_taken_under_every_metric(metric):
    rows = scipy.sparse.random(50, 9, density=0.2, format="csr", random_state=0)  # some rows are empty
    model = cheap(metric=metric).fit(rows)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_allclose(model.embedding_, cheap(metric=metric).fit_transform(rows.toarray()), atol=1e-5)
