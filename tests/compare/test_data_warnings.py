"""Warnings about rows before they are embedded: when they appear and what they name."""

import warnings

import numpy as np
import pytest

from dre.compare.data_warnings import data_warnings

X = np.random.default_rng(0).normal(size=(400, 4))


def with_heavy(column, times):
    heavy = X.copy()
    heavy[:, column] *= times
    return heavy


def test_a_plain_table_is_no_news():
    assert data_warnings(X, list("abcd")) == []


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("times", [8, 30, -1e9])
def test_a_column_that_holds_most_of_the_variance_is_named_with_its_share(column, times, monkeypatch):
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 4 * 150)  # several chunks
    heavy = with_heavy(column, times)
    share = int(100 * heavy.var(0)[column] / heavy.var(0).sum())
    (warning,) = data_warnings(heavy + 1e3, list("abcd"))
    assert f"column {'abcd'[column]!r} makes up {share} %" in warning
    assert "standardize=True" in warning
    assert f"column {column} makes up {share} %" in data_warnings(heavy)[0]


def test_nine_tenths_are_the_limit():
    def share(times):
        variances = with_heavy(1, times).var(0)
        return variances[1] / variances.sum()

    below, above = 4.5, 6.0
    assert share(below) < 0.9 < share(above)
    assert data_warnings(with_heavy(1, below)) == []
    assert len(data_warnings(with_heavy(1, above))) == 1


def test_a_column_with_large_values_that_hardly_differ_is_not_heavy():
    assert data_warnings(X + np.array([1e6, 0, 0, 0])) == []


@pytest.mark.parametrize(
    "values",
    [
        X[:, :1] * 1e3,  # one column has no other beside it
        np.ones((30, 3)),
        np.zeros((0, 3)),
        np.where(np.arange(4) == 1, np.nan, X),
        X * 1j,
        X.astype(str),
        np.zeros((5, 8, 8)),
    ],
    ids=["one", "constant", "none", "gaps", "complex", "text", "images"],
)
def test_what_has_no_shares_is_left_to_those_who_check_it(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert data_warnings(values) == []
