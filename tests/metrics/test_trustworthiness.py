"""Trustworthiness and continuity: their definition, scikit-learn's value, and no matrix of n x n."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import definitions
import numpy as np
import pytest
from definitions import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import manifold

import dre.neighbors.distances
from dre.metrics import continuity, trustworthiness


@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize("name", CASES)
def test_both_equal_their_definition(name: str, k: int) -> None:
    X, Y, _ = CASES[name]
    assert trustworthiness(X, Y, k=k) == pytest.approx(definitions.trustworthiness(X, Y, k), abs=1e-12)
    assert continuity(X, Y, k=k) == pytest.approx(definitions.continuity(X, Y, k), abs=1e-12)


@pytest.mark.parametrize("name", ["normal", "digits", "a map in one place"])
def test_each_point_has_its_own_value_and_their_mean_is_the_score(name: str) -> None:
    X, Y, _ = CASES[name]
    for function, rows, embedding in ((trustworthiness, X, Y), (continuity, Y, X)):
        values = function(X, Y, k=5, per_point=True)
        assert isinstance(values, np.ndarray)
        assert values.shape == (len(X),)
        assert values == pytest.approx(definitions.trustworthiness_of_points(rows, embedding, 5), abs=1e-12)
        assert values.mean() == pytest.approx(function(X, Y, k=5), abs=1e-12)


@pytest.mark.parametrize("k", [1, 5, 7, 30])
@pytest.mark.parametrize("n", [300, 1500])
def test_without_ties_both_equal_scikit_learn(n: int, k: int) -> None:
    X, Y, _ = definitions.normal(n, seed=n)
    assert trustworthiness(X, Y, k=k) == pytest.approx(manifold.trustworthiness(X, Y, n_neighbors=k), abs=1e-9)
    assert continuity(X, Y, k=k) == pytest.approx(manifold.trustworthiness(Y, X, n_neighbors=k), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 20), n=st.integers(50, 90), spread=st.integers(1, 6))
def test_both_equal_their_definition_on_grids_full_of_ties(seed: int, k: int, n: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(spread + 1, size=(n, 6)), rng.integers(spread + 1, size=(n, 2))
    assert trustworthiness(X, Y, k=k) == pytest.approx(definitions.trustworthiness(X, Y, k), abs=1e-12)
    assert continuity(X, Y, k=k) == pytest.approx(definitions.continuity(X, Y, k), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_map_that_is_the_rows_themselves_is_perfect(name: str) -> None:
    X = CASES[name].X
    assert trustworthiness(X, X) == 1
    assert continuity(X, X) == 1


@pytest.mark.parametrize("block", [8, 104, 10**9])
@pytest.mark.parametrize("name", ["normal", "digits", "duplicates", "an outlier"])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    X, Y, _ = CASES[name]
    whole = trustworthiness(X, Y), continuity(X, Y)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert (trustworthiness(X, Y), continuity(X, Y)) == whole


@pytest.mark.parametrize("n", [16, 17, 18, 24, 25])
def test_a_last_block_of_one_row_is_no_exception(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": 8})
    X, Y, _ = definitions.normal(n, columns=6)
    assert trustworthiness(X, Y, k=3) == pytest.approx(definitions.trustworthiness(X, Y, 3), abs=1e-12)
    assert continuity(X, Y, k=3) == pytest.approx(definitions.continuity(X, Y, 3), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-23, 1e-8, 1e8, 1e20])
def test_the_scale_of_the_rows_and_of_the_map_does_not_matter(scale: float) -> None:
    X, Y, _ = CASES["six columns"]
    wanted = trustworthiness(X, Y), continuity(X, Y)
    assert (trustworthiness(scale * X, Y), continuity(scale * X, Y)) == wanted
    assert (trustworthiness(X, scale * Y), continuity(X, scale * Y)) == wanted


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 24))
def test_both_lie_between_0_and_1(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(50, 5)), rng.normal(size=(50, 2))
    for values in (trustworthiness(X, Y, k=k, per_point=True), continuity(X, Y, k=k, per_point=True)):
        assert isinstance(values, np.ndarray)
        assert values.min() >= 0
        assert values.max() <= 1


MEMORY = """
import numpy as np, torch
from dre.metrics import continuity, trustworthiness
torch.set_num_threads(1)
def peak():  # in kB; unlike getrusage's, it doesn't begin with the peak of the process that started this one
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
X = np.random.default_rng(0).normal(size=(6000, 10))
Y = X[:, :2] + 0.1
trustworthiness(X[:300], Y[:300]), continuity(X[:300], Y[:300])
before = peak()
trustworthiness(X, Y), continuity(X, Y)
print((peak() - before) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_nothing_of_n_by_n_is_held() -> None:
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 100, "MB; all distances of 6,000 rows would be 288"
