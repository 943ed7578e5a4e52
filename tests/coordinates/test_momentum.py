"""Gradient descent with momentum and gains."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dre.coordinates.momentum import LONGEST, Momentum

START = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))


def descend(steps: int, lr: float, stretch: Tensor, momentum: float = 0.8) -> Tensor:
    """Minimize Σ stretch · y² / 2."""
    coordinates = START.clone()
    state = Momentum(coordinates)
    for _ in range(steps):
        state.move(coordinates, stretch * coordinates, lr, momentum)
    return coordinates


def test_it_comes_to_the_minimum_of_a_bowl() -> None:
    assert descend(200, 0.1, torch.tensor([1.0, 1.0])).abs().max() < 1e-3


def test_a_coordinate_that_keeps_its_direction_moves_faster_than_plain_descent() -> None:
    flat = torch.tensor([0.001, 0.001])
    plain = START * (1 - 0.1 * 0.001) ** 50
    assert (descend(50, 0.1, flat).norm() / START.norm()) < 0.95 < (plain.norm() / START.norm())


@pytest.mark.parametrize("lr", [0.1, 1e3])
def test_the_mean_stays_at_the_origin_and_no_row_jumps(lr: float) -> None:
    coordinates, state = START.clone(), Momentum(START)
    for seed in range(5):
        before = coordinates.clone()
        gradient = torch.randn(20, 2, generator=torch.Generator().manual_seed(seed)) + 3
        state.move(coordinates, gradient, lr, 0.8)
        assert coordinates.mean(0).abs().max() < 1e-5
        moved = coordinates - (before - before.mean(0))
        assert moved.abs().max() <= 2 * LONGEST  # its own step, and that of the mean


def test_the_first_step_goes_down_the_gradient() -> None:
    coordinates = START - START.mean(0)
    before, gradient = coordinates.clone(), START - START.mean(0)
    Momentum(coordinates).move(coordinates, gradient, 0.1, 0.5)
    # A gain grows by a fifth while nothing speaks against it.
    torch.testing.assert_close(coordinates, before - 0.1 * 1.2 * gradient)


def test_a_gain_shrinks_where_the_gradient_turns_and_never_to_nothing() -> None:
    """With a rate that overshoots, the gains make the difference between swinging and coming to rest."""
    coordinates = torch.tensor([[1.0], [-1.0]])
    state = Momentum(coordinates)
    for _ in range(300):
        state.move(coordinates, 25.0 * coordinates, 0.1, 0.0)  # plain descent would multiply the distance by -1.5 in each step
    assert coordinates.abs().max() < 1e-2
    assert (state._gain > 0).all()
