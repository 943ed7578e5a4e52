"""Normalized stress: its definition in both protocols."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
from definitions import CASES
from scipy.spatial.distance import pdist

import dre.metrics.pairwise_pass
import dre.neighbors.distances
from dre.metrics import normalized_stress
from dre.metrics.inputs import LOW, embedding_space
from dre.metrics.pairwise_pass import DistanceRange, PairwiseStatistics


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("name", CASES)
def test_it_equals_its_definition(name: str, protocol: str) -> None:
    X, Y, _ = CASES[name]
    wanted = definitions.normalized_stress(X, Y, protocol)
    assert normalized_stress(X, Y, protocol=protocol) == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "rows in one place"])
def test_a_map_that_is_the_rows_themselves_has_none(name: str, protocol: str) -> None:
    X = CASES[name].X
    assert normalized_stress(X, X, protocol=protocol) == 0


@pytest.mark.parametrize("block", [8, 104, 10**9])
@pytest.mark.parametrize("protocol", ["standard", "paper"])
@pytest.mark.parametrize("name", ["normal", "digits", "duplicates", "an outlier"])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, protocol: str, block: int) -> None:
    X, Y, _ = CASES[name]
    whole = normalized_stress(X, Y, protocol=protocol)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert normalized_stress(X, Y, protocol=protocol) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 0.1, 3.0, 1e8])
def test_in_the_papers_protocol_the_scale_of_the_map_does_not_matter(scale: float) -> None:
    X, Y, _ = CASES["normal"]
    assert normalized_stress(X, scale * Y, protocol="paper") == pytest.approx(normalized_stress(X, Y, protocol="paper"))
    assert normalized_stress(X, scale * Y) != pytest.approx(normalized_stress(X, Y))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("protocol", ["standard", "paper"])
def test_the_unit_of_rows_and_map_does_not_matter(protocol: str, scale: float) -> None:
    X, Y, _ = CASES["normal"]
    assert normalized_stress(scale * X, scale * Y, protocol=protocol) == pytest.approx(
        normalized_stress(X, Y, protocol=protocol), rel=1e-9
    )


def test_a_map_of_twice_the_size_has_a_stress_of_one() -> None:
    X, _, _ = CASES["normal"]
    assert normalized_stress(X, 2 * X) == pytest.approx(1, abs=1e-12)
    assert normalized_stress(X, 0 * X) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("protocol", ["standard", "paper"])
def test_large_float32_data_lose_little_to_float32_products(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    X, Y, _ = CASES["float32"]
    wide = normalized_stress(X, Y, protocol=protocol)
    monkeypatch.setattr(dre.metrics.pairwise_pass, "FLOAT64_UP_TO", 0)
    narrow = normalized_stress(X, Y, protocol=protocol)
    assert narrow != wide, "float64 was taken all the same"
    assert narrow == pytest.approx(wide, rel=1e-5)


@pytest.mark.parametrize("name", ["normal", "six columns", "an outlier", "tiny"])
def test_the_extent_of_distances_is_from_the_smallest_to_the_largest(name: str) -> None:
    X = CASES[name].X
    assert PairwiseStatistics(embedding_space(X)).compute(DistanceRange(LOW))[0] == pytest.approx(
        (pdist(X).min(), pdist(X).max()), rel=1e-12
    )


@pytest.mark.parametrize("row", range(10, 20))
def test_the_smallest_distance_is_nothing_where_two_rows_are_equal_which_a_product_does_not_say(row: int) -> None:
    X = CASES["an outlier"].X.copy()
    X[row] = X[2 * row]
    assert PairwiseStatistics(embedding_space(X)).compute(DistanceRange(LOW))[0][0] == 0


def test_rows_that_all_lie_in_one_place_have_no_stress_to_speak_of() -> None:
    assert np.isnan(normalized_stress(np.zeros((5, 3)), np.random.default_rng(0).normal(size=(5, 2))))


def test_an_unknown_protocol_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="protocol='both'; known: standard, paper"):
        normalized_stress(np.zeros((4, 2)), np.zeros((4, 2)), protocol="both")
