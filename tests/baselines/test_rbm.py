"""The Boltzmann machine: its conditionals and energies are those of its definition, and contrastive divergence learns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from dre.baselines.rbm import RBM, ContrastiveDivergence
from dre.training.loop import DivergedError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def states(n: int) -> Tensor:
    """All of {0, 1}^n."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=n)))


def tiny(*, linear: bool = False, visible: int = 4, hidden: int = 3) -> RBM:
    random = generator(1)
    weight, b, c = (torch.randn(shape, generator=random) for shape in ((visible, hidden), (visible,), (hidden,)))
    return RBM(weight, b, c, linear=linear)


def energy(machine: RBM, v: Tensor, h: Tensor) -> Tensor:
    """E of all pairs of states, (v, h), from the definition."""
    bare = h.square().sum(1) / 2 if machine.linear else torch.zeros(len(h))
    return bare[None] - (v @ machine.visible_bias)[:, None] - (h @ machine.hidden_bias)[None] - v @ machine.weight @ h.T


def bars_and_stripes(side: int = 3) -> Tensor:
    """Images whose rows are each all on or all off, and those turned by a quarter."""
    lines = states(side)
    stripes = lines[:, :, None].expand(-1, side, side)
    return torch.cat([stripes, stripes.mT]).reshape(-1, side * side).unique(dim=0)


def test_the_conditionals_are_those_of_the_energy():
    machine, v, h = tiny(), states(4), states(3)
    joint = (-energy(machine, v, h)).exp()
    torch.testing.assert_close(machine.up(v), joint @ h / joint.sum(1, keepdim=True))
    torch.testing.assert_close(machine.down(h), joint.T @ v / joint.sum(0)[:, None])


def test_the_free_energy_sums_over_all_hidden_states():
    machine, v = tiny(), states(4)
    torch.testing.assert_close(machine.free_energy(v), -(-energy(machine, v, states(3))).logsumexp(1))


def test_the_free_energy_of_linear_units_integrates_over_them():
    machine, v = tiny(linear=True, hidden=1), states(4)
    h = torch.linspace(-40, 40, 20_001)[:, None]
    integral = -(-energy(machine, v, h)).logsumexp(1)
    free = machine.free_energy(v)
    torch.testing.assert_close(free - free[0], integral - integral[0], rtol=1e-4, atol=1e-3)


def test_linear_units_are_gaussian_around_their_input_with_the_variance_one():
    machine, v = tiny(linear=True), states(4)
    torch.testing.assert_close(machine.up(v), v @ machine.weight + machine.hidden_bias)
    mean = machine.up(v[5:6]).expand(100_000, -1)
    samples = machine.sample(mean, generator())
    torch.testing.assert_close(samples.mean(0), mean[0], rtol=0, atol=0.02)
    torch.testing.assert_close(samples.var(0), torch.ones(3), rtol=0, atol=0.02)


def test_the_rows_pull_at_the_weights_as_the_free_energy_falls():
    """The first half of the divergence is the derivative of the negative free energy of the rows."""
    for linear in (False, True):
        machine = tiny(linear=linear)
        v = torch.rand(5, 4, generator=generator())
        wanted = (machine.weight.requires_grad_(), machine.visible_bias.requires_grad_(), machine.hidden_bias.requires_grad_())
        by_weight, by_visible, by_hidden = torch.autograd.grad(-machine.free_energy(v).sum(), wanted)
        torch.testing.assert_close(by_weight, v.T @ machine.up(v))
        torch.testing.assert_close(by_visible, v.sum(0))
        torch.testing.assert_close(by_hidden, machine.up(v).sum(0))


def test_one_divergence_is_up_down_and_up_with_the_states_that_were_drawn():
    machine, v = tiny(), torch.rand(6, 4, generator=generator(2))
    change = machine.gradient(v, generator(3))
    W, b, c = (p.double().numpy() for p in (machine.weight, machine.visible_bias, machine.hidden_bias))
    v0 = v.double().numpy()
    h0 = 1 / (1 + np.exp(-(v0 @ W + c)))
    state = (torch.rand(6, 3, generator=generator(3)).numpy() < h0).astype(float)
    v1 = 1 / (1 + np.exp(-(state @ W.T + b)))
    h1 = 1 / (1 + np.exp(-(v1 @ W + c)))
    np.testing.assert_allclose(change.weight, (v0.T @ h0 - v1.T @ h1) / 6, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(change.visible_bias, (v0 - v1).mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(change.hidden_bias, (h0 - h1).mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(change.error, np.square(v0 - v1).mean(), rtol=1e-4)


def test_the_mean_of_many_divergences_is_the_expectation_over_all_hidden_states():
    machine, v = tiny(), torch.tensor([[0.9, 0.2, 0.5, 0.0]])
    h0, h = machine.up(v), states(3)
    chance = (h * h0 + (1 - h) * (1 - h0)).prod(1)  # of each hidden state given v
    back = machine.down(h)
    again = machine.up(back)
    expected = v.T @ h0 - torch.einsum("s,sv,sh->vh", chance, back, again)
    found = machine.gradient(v.expand(200_000, -1), generator()).weight
    torch.testing.assert_close(found, expected, rtol=0, atol=5e-3)


@pytest.mark.parametrize("linear", [False, True])
def test_a_step_has_rate_decay_and_momentum_where_they_belong(linear):
    machine, v = tiny(linear=linear), torch.rand(8, 4, generator=generator(2))
    plan = ContrastiveDivergence(
        3, batch_size=8, momentum=(0.5, 0.9), early_epochs=1, weight_decay=0.01, learning_rate=0.1, linear_learning_rate=0.02
    )
    rate = 0.02 if linear else 0.1
    found = plan.train(machine, v, generator(4))

    random, (W, b, c) = generator(4), (machine.weight, machine.visible_bias, machine.hidden_bias)
    moving = [torch.zeros_like(p) for p in (W, b, c)]
    for momentum in (0.5, 0.9, 0.9):
        order = torch.randperm(8, generator=random)
        change = RBM(W, b, c, linear=linear).gradient(v[order], random)
        wanted = (change.weight - 0.01 * W, change.visible_bias, change.hidden_bias)
        moving = [momentum * m + rate * w for m, w in zip(moving, wanted, strict=True)]
        W, b, c = W + moving[0], b + moving[1], c + moving[2]
    for got, expected in zip((found.weight, found.visible_bias, found.hidden_bias), (W, b, c), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_bars_and_stripes_become_likelier_than_chance():
    patterns = bars_and_stripes()
    v = patterns.repeat(40, 1)
    untrained = RBM.initialize(9, 12, generator())
    machine = ContrastiveDivergence(400, batch_size=len(v) // 8).train(untrained, v, generator())
    everything = states(9)
    log_z = (-machine.free_energy(everything)).logsumexp(0)
    likelihood = float((-machine.free_energy(patterns) - log_z).mean())
    assert likelihood > -4.5  # log(1/512) = -6.24 by chance, and log(1/14) = -2.64 at best
    others = torch.tensor([row for row in everything.tolist() if row not in patterns.tolist()])
    below = machine.free_energy(patterns)[:, None] < machine.free_energy(others)[None]
    assert below.float().mean() > 0.9


@pytest.mark.parametrize("linear", [False, True])
def test_the_reconstruction_error_falls_below_that_of_the_mean(linear):
    random = generator(5)
    means = torch.rand(3, 20, generator=random).round() * 0.9 + 0.05
    v = means[torch.randint(3, (300,), generator=random)]
    plan = ContrastiveDivergence(60, batch_size=20, linear_learning_rate=0.01)
    machine = plan.train(RBM.initialize(20, 6, random, linear=linear), v, random)
    assert len(machine.errors) == 60
    assert machine.errors[-1] < 0.5 * machine.errors[0]
    assert machine.errors[-1] < 0.5 * float((v - v.mean(0)).square().mean())


def test_seeds_decide_and_nothing_outside_is_touched():
    v = torch.rand(50, 6, generator=generator(6))
    untrained = RBM.initialize(6, 4, generator())
    before = [
        v.clone(),
        untrained.weight.clone(),
        untrained.hidden_bias.clone(),
        untrained.visible_bias.clone(),
        torch.get_rng_state(),
    ]
    first, second, other = (ContrastiveDivergence(3, batch_size=10).train(untrained, v, generator(s)) for s in (1, 1, 2))
    after = [v, untrained.weight, untrained.hidden_bias, untrained.visible_bias, torch.get_rng_state()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert untrained.errors == []
    assert torch.equal(first.weight, second.weight)
    assert first.errors == second.errors
    assert not torch.equal(first.weight, other.weight)


def test_every_step_is_ticked_and_every_row_is_used():
    ticks: list[int] = []
    plan = ContrastiveDivergence(2, batch_size=10)
    plan.train(
        RBM.initialize(4, 2, generator()), torch.rand(35, 4, generator=generator()), generator(), lambda: ticks.append(1)
    )
    assert len(ticks) == 2 * plan.steps(35) == 8


def test_rows_out_of_range_that_make_it_diverge_are_an_error_that_says_what_to_do():
    v = 1e4 * torch.rand(40, 4, generator=generator())
    with pytest.raises(DivergedError, match=r"scale the rows to \[0, 1\]"):
        ContrastiveDivergence(30, batch_size=5).train(RBM.initialize(4, 3, generator(), linear=True), v, generator())


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch_size": 0}])
def test_plans_without_steps_are_refused(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        ContrastiveDivergence(**wrong)
