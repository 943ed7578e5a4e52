"""Procrustes analysis: two embeddings of the same rows, aligned."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
import scipy.spatial
import scipy.spatial.distance
import torch
from definitions import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from dre.metrics import align, align_stages, procrustes_distance


@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_the_distance_is_scipys_disparity(columns: int) -> None:
    A, B = definitions.normal(80, 1, columns).Y, definitions.normal(80, 2, columns).Y
    for b in (B, A + 0.1 * B, 1e3 + B, 1e-8 * B):
        wanted = scipy.spatial.procrustes(A, b)[2]
        assert procrustes_distance(A, b) == pytest.approx(wanted, abs=1e-9)
        assert procrustes_distance(b, A) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_error_after_alignment_is_the_distance(columns: int) -> None:
    A, B = definitions.normal(80, 1, columns).Y, definitions.normal(80, 2, columns).Y
    left = ((A - align(A, B)) ** 2).sum() / ((A - A.mean(0)) ** 2).sum()
    assert left == pytest.approx(procrustes_distance(A, B), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    angle=st.floats(0, 2 * np.pi),
    mirrored=st.booleans(),
    shift=st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
    scale=st.floats(1e-3, 1e3),
)
def test_a_map_that_was_turned_mirrored_shifted_and_scaled_comes_back(
    angle: float, mirrored: bool, shift: tuple[float, float], scale: float
) -> None:
    A = CASES["normal"].Y
    B = scale * definitions.moved(A, angle, mirrored, shift)
    assert align(A, B) == pytest.approx(A, abs=1e-8)
    assert procrustes_distance(A, B) < 1e-9


def test_maps_may_be_of_any_kind_and_are_left_as_they_were() -> None:
    A, B = definitions.normal(80, 1).Y, definitions.normal(80, 2).Y
    a, b = torch.tensor(A), torch.tensor(B, requires_grad=True)
    assert procrustes_distance(a, b) == procrustes_distance(A, B)
    assert np.array_equal(align(a, b), align(A, B))
    assert np.array_equal(a.numpy(), A)
    assert np.array_equal(b.detach().numpy(), B)


@pytest.mark.parametrize("shape", [(70, 2), (80, 3)])
@pytest.mark.parametrize("function", [procrustes_distance, align])
def test_maps_of_other_shapes_are_an_error_that_names_both(function: object, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=rf"\(80, 2\) and (B|embedding) \({shape[0]}, {shape[1]}\).*same rows"):
        function(np.zeros((80, 2)), np.zeros(shape))  # type: ignore[operator]


@pytest.mark.parametrize("place", [0.0, 0.1, 1e3 / 3])
def test_a_map_in_one_place_is_an_error_that_says_so(place: float) -> None:
    A = CASES["normal"].Y
    with pytest.raises(ValueError, match=r"all points .* are equal"):
        procrustes_distance(A, np.full_like(A, place))


def test_a_map_that_is_not_finite_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="Input B contains NaN"):
        procrustes_distance(np.zeros((3, 2)), [[0, 0], [0, np.nan], [0, 0]])


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_without_scaling_all_distances_stay(columns: int) -> None:
    A, B = definitions.normal(80, 1, columns).Y, 7 * definitions.normal(80, 2, columns).Y
    found = align(A, B, scale="none")
    assert scipy.spatial.distance.pdist(found) == pytest.approx(scipy.spatial.distance.pdist(B))
    assert found.mean(0) == pytest.approx(A.mean(0), abs=1e-12)


def test_matching_the_scale_makes_both_equally_large() -> None:
    A, B = definitions.normal(80, 1).Y, 7 * definitions.normal(80, 2).Y
    found = align(A, B, scale="match")
    assert found.std(0) @ found.std(0) == pytest.approx(A.std(0) @ A.std(0))
    turned = align(A, B, scale="none")
    assert found - A.mean(0) == pytest.approx((turned - A.mean(0)) * np.sqrt((A.std(0) ** 2).sum() / (B.std(0) ** 2).sum()))


@pytest.mark.parametrize("scale", ["fit", "match", "none"])
def test_points_in_one_place_are_aligned_to_the_center(scale: str) -> None:
    A = CASES["normal"].Y
    assert align(A, np.zeros_like(A), scale=scale) == pytest.approx(np.tile(A.mean(0), (len(A), 1)))  # type: ignore[arg-type]


def test_stages_are_aligned_one_to_the_next_and_the_last_stays() -> None:
    first, second, last = (definitions.normal(80, seed).Y for seed in (1, 2, 3))
    found = align_stages([first, second, last], scale="match")
    assert np.array_equal(found[2], last)
    assert np.array_equal(found[1], align(last, second, scale="match"))
    assert np.array_equal(found[0], align(found[1], first, scale="match"))
