"""Gradient descent with momentum and gains."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dre.coordinates.momentum import LONGEST, Momentum

START = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))


def descend(steps: int, lr: float, stretch: Tensor, momentum: float = 0.8) -> Tensor:
    """Minimize Σ stretch · y² / 2."""
    places = START.clone()
    state = Momentum(places)
    for _ in range(steps):
        state.move(places, stretch * places, lr, momentum)
    return places


def test_it_comes_to_the_minimum_of_a_bowl() -> None:
    assert descend(200, 0.1, torch.tensor([1.0, 1.0])).abs().max() < 1e-3


def test_a_coordinate_that_keeps_its_direction_moves_faster_than_plain_descent() -> None:
    flat = torch.tensor([0.001, 0.001])
    plain = START * (1 - 0.1 * 0.001) ** 50
    assert (descend(50, 0.1, flat).norm() / START.norm()) < 0.95 < (plain.norm() / START.norm())


@pytest.mark.parametrize("lr", [0.1, 1e3])
def test_the_mean_stays_at_the_origin_and_no_row_jumps(lr: float) -> None:
    places, state = START.clone(), Momentum(START)
    for seed in range(5):
        before = places.clone()
        gradient = torch.randn(20, 2, generator=torch.Generator().manual_seed(seed)) + 3
        state.move(places, gradient, lr, 0.8)
        assert places.mean(0).abs().max() < 1e-5
        moved = places - (before - before.mean(0))
        assert moved.abs().max() <= 2 * LONGEST  # its own step, and that of the mean


def test_the_first_step_goes_down_the_gradient() -> None:
    places = START - START.mean(0)
    before, gradient = places.clone(), START - START.mean(0)
    Momentum(places).move(places, gradient, 0.1, 0.5)
    torch.testing.assert_close(places, before - 0.1 * 1.2 * gradient)  # a gain grows by a fifth while nothing speaks against


def test_a_gain_shrinks_where_the_gradient_turns_and_never_to_nothing() -> None:
    """With a rate that overshoots, the gains make the difference between swinging and coming to rest."""
    places = torch.tensor([[1.0], [-1.0]])
    state = Momentum(places)
    for _ in range(300):
        state.move(places, 25.0 * places, 0.1, 0.0)  # plain descent would multiply the distance by -1.5 in each step
    assert places.abs().max() < 1e-2
    assert (state._gain > 0).all()
