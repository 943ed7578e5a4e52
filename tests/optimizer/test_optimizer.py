"""How the weights are moved."""

from __future__ import annotations

import copy
import math
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from dre import Optimizer
from dre.optimizer import OPTIMIZERS, AdamState, one_cycle
from dre.optimizer.whitening import LinearLayers


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


# Text, errors and states.


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Optimizer(1e-2, beta2=0.99, warmup=0.1, whiten=True), "adam(0.01, beta2=0.99, warmup=0.1, whiten=true)"),
        (Optimizer(1e-3), "adam(0.001)"),
        (Optimizer(1e-3, policy="constant", clip=1.0, beta2=0.9), "adam(0.001, policy=constant, clip=1.0, beta2=0.9)"),
    ],
)
def test_the_text_of_an_optimizer_is_read_as_the_same(plan: Optimizer, text: str) -> None:
    assert str(plan) == text
    assert OPTIMIZERS.parse(text) == plan


@pytest.mark.parametrize("name", ["beta2", "warmup"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_shares_must_lie_between_nothing_and_all(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value!r}.*between 0 and 1"):
        Optimizer(1e-3, **{name: value})


@pytest.mark.parametrize("warmup", [0.1, 0.3, 0.7])
def test_the_rate_rises_for_the_share_of_the_warmup(warmup: float) -> None:
    rates = one_cycle(1.0, 1000, warmup)
    assert int(rates.argmax()) == pytest.approx(1000 * warmup, abs=1)
    assert rates.max().item() == pytest.approx(1.0, abs=1e-4)
    assert (rates > 0).all()


def test_beta2_is_that_of_torchs_adam() -> None:
    ours, theirs = a_network()[0], a_network()[0]
    state = Optimizer(1e-2, beta2=0.9, policy="constant").start(ours.parameters(), 10)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.9, 0.9))
    for x in batches_of(10):
        for layer in (ours, theirs):
            layer.zero_grad()
            layer(x).square().sum().backward()
        state.update()
        adam.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


def test_whitened_steps_are_not_captured() -> None:
    """The host looks at the covariance from time to time."""
    assert Optimizer(1e-3).capturable
    assert not Optimizer(1e-3, whiten=True).capturable


@pytest.mark.parametrize("plan", [Optimizer(1e-2, whiten=True), Optimizer(1e-2, beta2=0.9, warmup=0.5)], ids=str)
@pytest.mark.parametrize("stop", [1, 6, 29])
def test_a_state_that_is_loaded_goes_on_in_the_same_bits(plan: Optimizer, stop: int) -> None:
    def descend(layers: nn.Sequential, state: AdamState, batches: list[torch.Tensor]) -> None:
        for x in batches:
            layers.zero_grad()
            layers(x).square().sum().backward()
            state.update()

    layers, batches = nn.Sequential(*a_network()), batches_of(30)
    state = plan.start(layers.parameters(), 30, layers=LinearLayers(layers))
    descend(layers, state, batches[:stop])
    saved, weights = state.state_dict(), copy.deepcopy(layers.state_dict())
    descend(layers, state, batches[stop:])
    again = nn.Sequential(*a_network())
    again.load_state_dict(weights)
    resumed = plan.start(again.parameters(), 30, layers=LinearLayers(again))
    resumed.load_state_dict(saved)
    descend(again, resumed, batches[stop:])
    for mine, other in zip(layers.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_state_of_one_buffer_is_loaded_into_several_weights_and_back() -> None:
    """Whether all weights lie in one buffer depends on the machine."""
    layers = nn.Sequential(*a_network())
    flat = nn.Parameter(torch.cat([p.detach().ravel() for p in layers.parameters()]))
    states = [Optimizer(1e-2).start(weights, 10) for weights in (layers.parameters(), [flat])]
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        flat.grad = torch.randn(flat.shape, generator=generator)
        for parameter, part in zip(layers.parameters(), flat.grad.split([p.numel() for p in layers.parameters()]), strict=True):
            parameter.grad = part.view_as(parameter)
        for state in states:
            state.update()
    swapped = [Optimizer(1e-2).start(weights, 10) for weights in (layers.parameters(), [flat])]
    swapped[0].load_state_dict(states[1].state_dict())
    swapped[1].load_state_dict(states[0].state_dict())
    for state in swapped:
        state.update()
    torch.testing.assert_close(torch.cat([p.detach().ravel() for p in layers.parameters()]), flat.detach())
