"""How the weights are moved."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from dre import Optimizer
from dre.optimizer import one_cycle


def a_network() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    return nn.Linear(5, 3), nn.Linear(3, 2)


def batches_of(steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(20, 5, generator=generator) for _ in range(steps)]


@pytest.mark.parametrize("clip", [None, 0.01])
@pytest.mark.parametrize("eps", [1e-8, 1e-3])
def test_steps_are_those_of_torchs_adam(clip: float | None, eps: float) -> None:
    ours, theirs = a_network(), a_network()
    plan = Optimizer(1e-2, eps=eps, policy="constant", clip=clip)
    weights = [p for layer in ours for p in layer.parameters()]
    descent = plan.start(weights, 10)
    their_weights = [p for layer in theirs for p in layer.parameters()]
    adam = torch.optim.Adam(their_weights, lr=1e-2, eps=eps)
    for x in batches_of(10):
        for layers in (ours, theirs):
            for layer in layers:
                layer.zero_grad()
            layers[1](layers[0](x).relu()).square().sum().backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(their_weights, clip)
        descent.update()
        adam.step()
    for mine, other in zip(weights, their_weights, strict=True):
        torch.testing.assert_close(mine, other)


def test_weights_without_a_gradient_stay_and_frozen_ones_too() -> None:
    used, unused = a_network()
    used.bias.requires_grad_(requires_grad=False)
    before = [p.detach().clone() for p in (used.bias, *unused.parameters())]
    descent = Optimizer(1e-2).start([*used.parameters(), *unused.parameters()], 1)
    moved = used.weight.detach().clone()
    used(torch.ones(2, 5)).sum().backward()
    descent.update()
    assert not torch.equal(moved, used.weight)
    for old, now in zip(before, (used.bias, *unused.parameters()), strict=True):
        assert torch.equal(old, now)


@pytest.mark.parametrize("steps", [10, 11, 100, 1440])
def test_rates_are_those_of_torchs_one_cycle(steps: int) -> None:
    adam = torch.optim.Adam([nn.Parameter(torch.zeros(1))])
    cycle = OneCycleLR(adam, max_lr=2e-3, total_steps=steps, cycle_momentum=False)
    theirs = []
    for _ in range(steps):
        theirs.append(adam.param_groups[0]["lr"])
        adam.step()
        cycle.step() if len(theirs) < steps else None
    torch.testing.assert_close(one_cycle(2e-3, steps), torch.tensor(theirs, dtype=torch.double), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_few_steps_begin_at_the_peak_and_end_near_nothing(steps: int) -> None:
    rates = one_cycle(1.0, steps)
    assert rates[0] == pytest.approx(1.0) or steps == 1
    assert rates.isfinite().all()
    assert (rates[1:] < rates[:-1]).all()


def test_a_fit_does_not_import_torchs_compiler() -> None:
    """It takes seconds, and nothing of it is used."""
    code = """
import sys, numpy as np
from dre import DRE
rows = np.random.default_rng(0).normal(size=(60, 5))
DRE(schedule="x: gaussian(5) -> kl * 1; h1: gaussian(5) -> kl * 1", verbose=False).fit(rows)
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
