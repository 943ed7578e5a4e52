"""Neighbor recall: the overlap of the nearest neighbors in two spaces."""

from __future__ import annotations

import definitions
import numpy as np
import pytest
import torch
from definitions import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

import dre.neighbors.distances
from dre.metrics import neighbor_agreement, neighbor_recall
from dre.metrics.recall import overlap


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_share_that_two_sets_have_in_common(name: str) -> None:
    X, Y, _ = CASES[name]
    found = neighbor_recall(X, Y, k=30)
    assert found.shape == (30,)
    assert found == pytest.approx(definitions.neighbor_recall(X, Y, 30), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_agreement_is_the_last_of_the_recalls_and_goes_both_ways(name: str) -> None:
    X, Y, _ = CASES[name]
    assert neighbor_agreement(X, Y, k=15) == pytest.approx(definitions.neighbor_recall(X, Y, 15)[-1], abs=1e-12)
    assert neighbor_agreement(Y, X, k=15) == pytest.approx(neighbor_agreement(X, Y, k=15), abs=1e-12)
    assert neighbor_agreement(X, X) == 1


@settings(max_examples=25, deadline=None)
@given(
    angle=st.floats(0, 2 * np.pi),
    mirrored=st.booleans(),
    shift=st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
    scale=st.floats(0.01, 100),
    name=st.sampled_from(["normal", "digits"]),
)
def test_moving_and_scaling_the_map_changes_nothing(
    angle: float, mirrored: bool, shift: tuple[float, float], scale: float, name: str
) -> None:
    X, Y, _ = CASES[name]
    there = scale * definitions.moved(Y, angle, mirrored, shift)
    assert neighbor_recall(X, there, k=20).tolist() == neighbor_recall(X, Y, k=20).tolist()
    assert neighbor_agreement(Y, there, k=20) == 1


@pytest.mark.parametrize("block", [8, 104])
@pytest.mark.parametrize("name", ["normal", "digits"])
def test_the_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    X, Y, _ = CASES[name]
    whole = neighbor_recall(X, Y, k=20)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    assert neighbor_recall(X, Y, k=20).tolist() == whole.tolist()


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 30), k=st.integers(1, 12), at_once=st.integers(1, 40), seed=st.integers(0, 2**31))
def test_shares_are_counted_from_the_place_at_which_both_have_a_neighbour(n: int, k: int, at_once: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.array([rng.permutation(14)[:k] for _ in range(n)]) for _ in range(2))
    wanted = [np.mean([len({*x[:m]} & {*y[:m]}) / m for x, y in zip(a, b, strict=True)]) for m in range(1, k + 1)]
    assert overlap(torch.tensor(a), torch.tensor(b), at_once).numpy() == pytest.approx(wanted, abs=1e-12)


def test_maps_of_different_numbers_of_rows_are_an_error_that_names_both() -> None:
    with pytest.raises(ValueError, match="A has 50 rows and B has 40"):
        neighbor_agreement(np.zeros((50, 2)), np.zeros((40, 2)))


def test_more_neighbours_than_half_the_rows_are_an_error_that_names_the_range() -> None:
    X, Y, _ = CASES["normal"]
    with pytest.raises(ValueError, match=r"k=100 .*130 rows.*below.*65"):
        neighbor_recall(X, Y)
