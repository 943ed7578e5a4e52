"""Shepard goodness: Spearman's correlation of all distances, exact or from a histogram that says how far off it may be."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
import scipy.stats
from definitions import CASES, Array
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

import dre.metrics.pairwise_pass
import dre.metrics.shepard
import dre.neighbors.distances
from dre.metrics import shepard_goodness


@pytest.mark.parametrize("name", CASES)
def test_it_equals_its_definition(name: str) -> None:
    X, Y, _ = CASES[name]
    wanted = definitions.shepard_goodness(X, Y)
    assert shepard_goodness(X, Y) == pytest.approx(wanted, abs=1e-9, nan_ok=True)
    assert np.isnan(wanted) == ("one place" in name)


@pytest.mark.parametrize("n", [50, 400])
def test_without_ties_it_is_spearmans_correlation_of_scipy(n: int) -> None:
    X, Y, _ = definitions.normal(n, seed=n)
    wanted = scipy.stats.spearmanr(pdist(X), pdist(Y)).statistic
    assert shepard_goodness(X, Y, method="exact") == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("method", "block"), [("exact", 8), ("exact", 104), ("exact", 10**9), ("histogram", 48), ("histogram", 10**9)]
)
@pytest.mark.parametrize("name", ["normal", "digits", "duplicates"])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, method: str, block: int) -> None:
    X, Y, _ = CASES[name]
    whole = shepard_goodness(X, Y, method=method)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert shepard_goodness(X, Y, method=method) == pytest.approx(whole, abs=1e-9 if method == "exact" else 1e-6)


def clustered(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    group = rng.integers(8, size=n)
    return 10 * rng.normal(size=(8, 10))[group] + rng.normal(size=(n, 10)), 5 * rng.normal(size=(8, 2))[group] + rng.normal(
        size=(n, 2)
    )


def heavy_tailed(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_t(2, size=(n, 10))
    return X, X[:, :2] + rng.standard_t(2, size=(n, 2))


def tied(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X, Y, _ = definitions.digits(n)
    return X, Y + 0.1 * rng.normal(size=Y.shape)


def plain(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X, Y, _ = definitions.normal(n, seed=int(rng.integers(100)))
    return X, Y


KINDS = {"normal": plain, "clustered": clustered, "heavy-tailed": heavy_tailed, "tied": tied}


@pytest.mark.parametrize("kind", KINDS)
def test_the_histogram_is_off_by_no_more_than_it_states_and_that_is_little(kind: str) -> None:
    X, Y = KINDS[kind](np.random.default_rng(1), 700)
    exact, none = shepard_goodness(X, Y, method="exact", return_error=True)  # type: ignore[misc]
    value, error = shepard_goodness(X, Y, method="histogram", return_error=True)  # type: ignore[misc]
    assert none == 0
    assert abs(value - exact) <= error
    assert 0 < error < 1e-3


@settings(max_examples=15, deadline=None)
@given(
    spread=st.integers(1, 40), columns=st.integers(1, 8), seed=st.integers(0, 2**31), offset=st.sampled_from([0.0, 0.1, 1e3])
)
def test_the_histogram_is_off_by_no_more_than_it_states_on_grids(spread: int, columns: int, seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(spread + 1, size=(80, columns)) + offset
    Y = X[:, :2] + 0.3 * rng.integers(spread + 1, size=(80, 1))
    exact = shepard_goodness(X, Y, method="exact")
    value, error = shepard_goodness(X, Y, method="histogram", return_error=True)  # type: ignore[misc]
    assert abs(value - exact) <= error


@pytest.mark.parametrize("far", [1e4, 1e6])
def test_an_outlier_does_not_spoil_the_histogram(far: float) -> None:
    X, Y, _ = definitions.normal(400, seed=3)
    X[0, 0] = far
    value, error = shepard_goodness(X, Y, method="histogram", return_error=True)  # type: ignore[misc]
    assert abs(value - shepard_goodness(X, Y, method="exact")) <= error  # type: ignore[operator]
    assert error < 1e-3


def test_the_histogram_finds_a_correlation_of_one_and_of_minus_one() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert shepard_goodness(X, X, method="histogram") == pytest.approx(1, abs=1e-12)
    apart = shepard_goodness([[0], [1], [3]], [[0], [3], [1]], method="histogram", return_error=True)
    assert apart == pytest.approx((-1, 0), abs=1e-12)


@pytest.mark.parametrize("limit", [129, 130])
def test_auto_is_exact_up_to_a_number_of_rows(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    X, Y, _ = CASES["normal"]
    monkeypatch.setattr(dre.metrics.shepard, "EXACT_UP_TO", limit)
    found = shepard_goodness(X, Y, return_error=True)
    assert found == shepard_goodness(X, Y, method="exact" if limit == len(X) else "histogram", return_error=True)
    assert (found[1] == 0) == (limit == len(X))  # type: ignore[index]


def test_exact_can_be_asked_for_beyond_the_limit_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, _ = CASES["normal"]
    whole = shepard_goodness(X, Y)
    monkeypatch.setattr(dre.metrics.shepard, "EXACT_UP_TO", 0)
    assert shepard_goodness(X, Y, method="exact") == whole
    assert shepard_goodness(X, Y) != whole


@pytest.mark.parametrize("name", ["float32", "digits"])
def test_exact_is_exact_for_large_float32_data_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    X, Y, _ = CASES[name]
    monkeypatch.setattr(dre.metrics.pairwise_pass, "FLOAT64_UP_TO", 0)
    value, error = shepard_goodness(X.astype("float32"), Y.astype("float32"), method="exact", return_error=True)  # type: ignore[misc]
    assert error == 0
    assert value == pytest.approx(definitions.shepard_goodness(X, Y), abs=1e-9)


def test_exact_beyond_the_memory_is_an_error_that_names_the_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, _ = CASES["normal"]
    monkeypatch.setattr(dre.metrics.shepard, "available_bytes", lambda device: 1000)
    with pytest.raises(ValueError, match=r"130 rows .* GiB .*method='histogram'"):
        shepard_goodness(X, Y, method="exact")
    monkeypatch.setattr(dre.metrics.shepard, "available_bytes", lambda device: None)
    assert shepard_goodness(X, Y, method="exact") == shepard_goodness(X, Y)


def test_an_unknown_method_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="method='fast'; known: auto, exact, histogram"):
        shepard_goodness(np.zeros((4, 2)), np.zeros((4, 2)), method="fast")


@pytest.mark.parametrize("method", ["exact", "histogram"])
@pytest.mark.parametrize("place", [0.0, 0.1, 1e3 / 3])
def test_distances_that_are_all_equal_have_no_correlation(method: str, place: float) -> None:
    X, Y, _ = CASES["normal"]
    assert np.isnan(shepard_goodness(X, np.full_like(Y, place), method=method))
    assert np.isnan(shepard_goodness(np.full_like(X, place), Y, method=method))


def test_a_map_that_is_the_rows_themselves_has_a_goodness_of_one() -> None:
    for name in ("normal", "digits", "duplicates", "an outlier", "tiny", "float32, far from the origin"):
        assert shepard_goodness(CASES[name].X, CASES[name].X) == pytest.approx(1, abs=1e-12)
