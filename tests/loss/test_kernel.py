"""Squared distances in the map, forward and backward, against plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dre.loss.kernel import curve, log_squared, off_diagonal, squared_distances


def points(n: int, components: int, seed: int = 0) -> Tensor:
    return torch.randn(n, components, generator=torch.Generator().manual_seed(seed), dtype=torch.double).requires_grad_()


def plain(y: Tensor) -> Tensor:
    return (y[:, None] - y[None, :]).square().sum(2)


@pytest.mark.parametrize("components", range(1, 11))
def test_forward_and_backward_are_those_of_plain_torch(components: int) -> None:
    y = points(12, components)
    upstream = torch.randn(12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.double)  # not symmetric
    (ours,) = torch.autograd.grad(squared_distances(y), y, upstream)
    (theirs,) = torch.autograd.grad(plain(y), y, upstream)
    assert torch.allclose(squared_distances(y), plain(y), rtol=1e-12, atol=0)
    assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("components", [1, 2, 3, 10])
def test_backward_agrees_with_finite_differences(components: int) -> None:
    assert torch.autograd.gradcheck(squared_distances, points(6, components))


def test_close_pairs_far_from_the_origin_keep_their_distance_in_float32() -> None:
    y = torch.tensor([[1000.0, -1000.0], [1000.001, -1000.0]])
    exact = float((y[1, 0].double() - y[0, 0].double()) ** 2)
    assert squared_distances(y)[0, 1].item() == pytest.approx(exact, rel=1e-6)


def test_the_gradient_keeps_its_precision_far_from_the_origin_in_float32() -> None:
    y = (points(30, 2).detach() * 4096).round().float() / 4096  # these can be shifted without rounding
    near, far = y.clone().requires_grad_(), (y + 1024).requires_grad_()
    (at_origin,) = torch.autograd.grad(squared_distances(near).log1p().sum(), near)
    (elsewhere,) = torch.autograd.grad(squared_distances(far).log1p().sum(), far)
    assert torch.allclose(at_origin, elsewhere, rtol=0, atol=1e-4)


def test_the_logarithm_is_exact_down_to_a_millionth_and_its_slope_down_to_a_hundredth() -> None:
    d = torch.logspace(-5.9, 4, 100, dtype=torch.double).requires_grad_()
    value = log_squared(d.square())
    (slope,) = torch.autograd.grad(value.sum(), d)
    assert torch.allclose(value, 2 * d.log())
    assert torch.allclose(slope[d >= 0.01], (2 / d)[d >= 0.01])
    assert (slope[d < 0.01] <= 200).all()
    assert (slope > 0).all()


def test_the_logarithm_of_no_distance_is_finite_and_flat() -> None:
    d = torch.zeros(1, requires_grad=True)
    (slope,) = torch.autograd.grad(log_squared(d.square()), d)
    assert log_squared(d.square()).isfinite()
    assert slope.item() == 0


def test_off_diagonal_fills_the_diagonal_alone() -> None:
    filled = off_diagonal(torch.ones(3, 3), 7.0)
    assert torch.equal(filled, torch.ones(3, 3) + 6 * torch.eye(3))


@pytest.mark.parametrize("min_dist", [0.001, 0.1, 0.5])
def test_the_curve_is_high_up_to_min_dist_and_falls_beyond(min_dist: float) -> None:
    a, b = curve(min_dist, 1.0)
    d = torch.linspace(0, 3, 300)
    w = 1 / (1 + a * d ** (2 * b))
    wanted = torch.where(d < min_dist, 1.0, torch.exp(min_dist - d))
    assert (w.diff() < 0).all()
    assert (w - wanted).abs().max() < 0.15
