"""Stability: two maps laid over each other."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
import scipy.spatial
import torch
from definitions import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from dre.metrics import laid_over, procrustes_distance


@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_the_distance_is_scipys_disparity(columns: int) -> None:
    A, B = definitions.normal(80, 1, columns).Y, definitions.normal(80, 2, columns).Y
    for b in (B, A + 0.1 * B, 1e3 + B, 1e-8 * B):
        wanted = scipy.spatial.procrustes(A, b)[2]
        assert procrustes_distance(A, b) == pytest.approx(wanted, abs=1e-9)
        assert procrustes_distance(b, A) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_what_is_left_after_laying_over_is_the_distance(columns: int) -> None:
    A, B = definitions.normal(80, 1, columns).Y, definitions.normal(80, 2, columns).Y
    left = ((A - laid_over(A, B)) ** 2).sum() / ((A - A.mean(0)) ** 2).sum()
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
    assert laid_over(A, B) == pytest.approx(A, abs=1e-8)
    assert procrustes_distance(A, B) < 1e-9


def test_maps_may_be_of_any_kind_and_are_left_as_they_were() -> None:
    A, B = definitions.normal(80, 1).Y, definitions.normal(80, 2).Y
    a, b = torch.tensor(A), torch.tensor(B, requires_grad=True)
    assert procrustes_distance(a, b) == procrustes_distance(A, B)
    assert np.array_equal(laid_over(a, b), laid_over(A, B))
    assert np.array_equal(a.numpy(), A)
    assert np.array_equal(b.detach().numpy(), B)


@pytest.mark.parametrize("shape", [(70, 2), (80, 3)])
@pytest.mark.parametrize("function", [procrustes_distance, laid_over])
def test_maps_of_other_shapes_are_an_error_that_names_both(function: object, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=rf"A has the shape \(80, 2\) and B \({shape[0]}, {shape[1]}\); both must be maps of"):
        function(np.zeros((80, 2)), np.zeros(shape))  # type: ignore[operator]


@pytest.mark.parametrize("place", [0.0, 0.1, 1e3 / 3])
def test_a_map_in_one_place_is_an_error_that_says_so(place: float) -> None:
    A = CASES["normal"].Y
    with pytest.raises(ValueError, match="all points of a map lie in one place"):
        procrustes_distance(A, np.full_like(A, place))


def test_a_map_that_is_not_finite_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="Input B contains NaN"):
        procrustes_distance(np.zeros((3, 2)), [[0, 0], [0, np.nan], [0, 0]])
