"""The loss of a network that follows coordinates."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dre.affinity.target import BatchCoordinates
from dre.loss import LOSSES, Step
from dre.loss.follow import Follow

AT = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))


def step(y: Tensor, at: Tensor = AT) -> Step:
    return Step(y, BatchCoordinates(at), torch.arange(len(y)), y, target=at)


def test_it_is_zero_at_the_coordinates_and_grows_with_the_distance() -> None:
    assert Follow()(step(AT)) == 0
    losses = [float(Follow()(step(AT + shift))) for shift in (0.1, 1.0, 10.0)]
    assert losses == pytest.approx([0.1, 1.0, 10.0], rel=1e-5)


def test_a_row_that_lies_far_off_pulls_no_harder_than_the_others() -> None:
    y = (AT + torch.tensor([1.0, -1.0])).requires_grad_()
    far = y.detach().clone()
    far[0] += 1e4
    far.requires_grad_()
    (near,), (away,) = (torch.autograd.grad(Follow()(step(each)), each) for each in (y, far))
    assert torch.equal(near[1:], away[1:])
    assert torch.equal(away[0].abs(), away[1].abs())


def test_it_does_not_depend_on_the_number_of_rows() -> None:
    twice = Follow()(step((AT + 0.3).repeat(2, 1), AT.repeat(2, 1)))
    torch.testing.assert_close(twice, Follow()(step(AT + 0.3)))


def test_it_is_the_loops_own_and_can_not_be_named_in_a_schedule() -> None:
    assert Follow().capturable
    assert not Follow().reads_bank
    assert "follow" not in LOSSES.members()
