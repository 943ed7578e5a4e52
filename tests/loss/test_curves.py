"""The curves of the losses: their values and slopes where points lie on each other, and UMAP's two numbers."""

from __future__ import annotations

import pytest
import torch

from dre.loss.curves import LogOdds, fit_ab


def test_the_log_odds_are_exact_down_to_a_millionth_and_their_slope_down_to_a_hundredth() -> None:
    d = torch.logspace(-5.9, 4, 100, dtype=torch.double)
    value, slope = LogOdds(2.0, 0.8)(d.square())
    assert torch.allclose(value, torch.tensor(2.0).double().log() + 1.6 * d.log())
    along = slope * 2 * d  # in d, not in its square
    assert torch.allclose(along[d >= 0.01], (1.6 / d)[d >= 0.01])
    assert (along[d < 0.01] <= 160).all()
    assert (along > 0).all()


def test_the_log_odds_of_no_distance_are_finite() -> None:
    value, slope = LogOdds(2.0, 0.8)(torch.zeros(1))
    assert value.isfinite()
    assert slope.isfinite()


@pytest.mark.parametrize("min_dist", [0.001, 0.1, 0.5])
def test_the_curve_is_high_up_to_min_dist_and_falls_beyond(min_dist: float) -> None:
    a, b = fit_ab(min_dist, 1.0)
    d = torch.linspace(0, 3, 300)
    w = 1 / (1 + a * d ** (2 * b))
    wanted = torch.where(d < min_dist, 1.0, torch.exp(min_dist - d))
    assert (w.diff() < 0).all()
    assert (w - wanted).abs().max() < 0.15
