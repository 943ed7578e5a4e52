"""Whitened gradients: steps that do not depend on how the inputs of a layer are mixed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from dre import Optimizer
from dre.encoder.dense_pass import DensePass
from dre.encoder.mlp import MLP
from dre.optimizer.whitening import DAMPING, EVERY, FIRST, WIDEST, LinearLayers, LinearStep, Whitening

D = 6


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mixed(n: int = 4000) -> Tensor:
    """Inputs with strong correlations."""
    return torch.randn(n, D, generator=seeded(0)) @ torch.randn(D, D, generator=seeded(1))


def whitened(gradient: Tensor, inputs: Tensor) -> Tensor:
    found = gradient.clone()
    Whitening(lambda: [LinearStep(found, inputs)]).apply()
    return found


def test_white_inputs_leave_the_direction_of_a_gradient() -> None:
    x = torch.linalg.qr(torch.randn(400, D, generator=seeded(0))).Q * 20
    gradient = torch.randn(3, D, generator=seeded(2))
    torch.testing.assert_close(whitened(gradient, x), gradient / (1 + DAMPING), rtol=1e-4, atol=1e-5)


def test_the_gradient_is_multiplied_by_the_damped_inverse_covariance() -> None:
    x, gradient = mixed(), torch.randn(3, D, generator=seeded(2))
    covariance = (x.T @ x / len(x)).double()
    variance = covariance.diagonal().mean()
    wanted = variance * gradient.double() @ torch.linalg.inv(covariance + DAMPING * variance * torch.eye(D))
    torch.testing.assert_close(whitened(gradient, x).double(), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_the_inputs_does_not_change_the_length_of_a_step(factor: float) -> None:
    x, gradient = mixed(), torch.randn(3, D, generator=seeded(2))
    torch.testing.assert_close(whitened(gradient, factor * x), whitened(gradient, x), rtol=1e-3, atol=1e-4)


def test_descent_on_correlated_inputs_needs_fewer_steps() -> None:
    x = mixed(500)
    y = x @ torch.randn(D, 1, generator=seeded(3))
    errors = []
    for whiten in (False, True):
        layer = nn.Linear(D, 1, bias=False)
        nn.init.zeros_(layer.weight)
        layers = LinearLayers(layer)
        state = Whitening(layers)
        rate = 0.9 / float(torch.linalg.eigvalsh(x.T @ x / len(x))[-1] if not whiten else (x.T @ x / len(x)).diagonal().mean())
        for _ in range(30):
            layer.zero_grad()
            error = (layer(x) - y).square().mean() / 2
            error.backward()
            if whiten:
                state.apply()
            with torch.no_grad():
                layer.weight -= rate * layer.weight.grad
        errors.append(error.item())
    assert errors[1] < 0.1 * errors[0]


@pytest.mark.parametrize("inputs", [torch.zeros(8, D), torch.ones(8, D), torch.randn(2, D, generator=seeded(5)) * 1e-15])
def test_inputs_without_variance_do_no_harm(inputs: Tensor) -> None:
    gradient = torch.randn(3, D, generator=seeded(2))
    found = whitened(gradient, inputs)
    assert found.isfinite().all()
    assert found.norm() <= 2 / DAMPING * gradient.norm()  # rare directions are not amplified without bound


def test_inputs_that_are_not_finite_leave_the_gradient_alone() -> None:
    """The loss is not finite either, and that is what the loop reports."""
    gradient = torch.randn(3, D, generator=seeded(2))
    assert torch.equal(whitened(gradient, torch.full((8, D), torch.nan)), gradient)


def test_layers_with_many_inputs_are_left_as_they_are() -> None:
    wide, narrow = torch.ones(2, WIDEST + 1), torch.ones(2, D)
    found = [wide.clone(), narrow.clone()]
    inputs = [torch.randn(50, WIDEST + 1, generator=seeded(0)), mixed(50)]
    Whitening(lambda: [LinearStep(each, x) for each, x in zip(found, inputs, strict=True)]).apply()
    assert torch.equal(found[0], wide)
    assert not torch.equal(found[1], narrow)


def test_the_covariance_is_looked_at_in_the_first_steps_and_then_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Whitening(lambda: [LinearStep(torch.ones(2, D), mixed(50))])
    looked = []
    original = Whitening._look
    monkeypatch.setattr(Whitening, "_look", lambda self, layers: looked.append(self._steps) or original(self, layers))
    for _ in range(2 * EVERY + 1):
        state.apply()
    assert looked == [*range(FIRST), EVERY, 2 * EVERY]


def test_a_state_that_is_saved_and_loaded_goes_on_in_the_same_bits() -> None:
    batches = [mixed(20) * (1 + seed) for seed in range(2 * EVERY + 2)]

    def gradients(state: Whitening, at: list[int], parts: list[LinearStep]) -> list[Tensor]:
        found = []
        for i in at:
            parts[:] = [LinearStep(torch.randn(3, D, generator=seeded(i)), batches[i])]
            state.apply()
            found.append(parts[0].gradient)
        return found

    parts: list[LinearStep] = []
    first = Whitening(lambda: parts)
    gradients(first, list(range(EVERY - 2)), parts)
    saved = first.state_dict()
    rest = list(range(EVERY - 2, len(batches)))
    wanted = gradients(first, rest, parts)  # what was saved must not follow
    again = Whitening(lambda: parts)
    again.load_state_dict(saved, torch.device("cpu"))
    assert all(map(torch.equal, gradients(again, rest, parts), wanted))


# The layers of a module.


def test_the_layers_of_a_module_are_seen_with_their_inputs_in_training_alone() -> None:
    module = nn.Sequential(nn.Linear(D, 4), nn.ReLU(), nn.Linear(4, 2))
    layers, x = LinearLayers(module), mixed(10)
    assert layers() == []
    module(x).sum().backward()
    module.eval()
    module(x + 1)
    module.train()
    first, second = layers()
    assert torch.equal(first.inputs, x)
    assert torch.equal(second.inputs, module[1](module[0](x)).detach())
    assert first.gradient is module[0].weight.grad
    assert second.gradient is module[2].weight.grad


def test_frozen_layers_are_left_out() -> None:
    module = nn.Sequential(nn.Linear(D, 4), nn.Linear(4, 2))
    module[0].requires_grad_(requires_grad=False)
    layers = LinearLayers(module)
    module(mixed(10)).sum().backward()
    assert [layer.gradient.shape for layer in layers()] == [(2, 4)]


def test_images_of_features_count_every_pixel() -> None:
    layer = nn.Linear(D, 2)
    layers = LinearLayers(layer)
    layer(torch.randn(5, 3, D, generator=seeded(0))).sum().backward()
    assert layers()[0].inputs.shape == (15, D)


def test_a_module_that_is_let_go_is_no_longer_watched() -> None:
    module = nn.Sequential(nn.Linear(D, 4), nn.Linear(4, 2))
    layers = LinearLayers(module)
    layers.remove()
    module(mixed(10)).sum().backward()
    assert layers() == []
    assert not any(part._forward_pre_hooks for part in module.modules())


def test_a_network_in_one_piece_is_whitened_as_one_of_torch() -> None:
    torch.manual_seed(0)
    networks = [MLP(8, depth=2).build((D,), 2) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    dense, layers = DensePass(networks[0]), LinearLayers(networks[1])  # type: ignore[arg-type]
    plan = Optimizer(1e-2, whiten=True)
    states = [plan.start([dense.weights], 8, layers=dense.layers), plan.start(networks[1].parameters(), 8, layers=layers)]
    for seed in range(8):
        x = mixed(40)[torch.randperm(40, generator=seeded(seed))[:30]]
        for run, weights, state in (
            (dense, [dense.weights], states[0]),
            (networks[1], list(networks[1].parameters()), states[1]),
        ):
            for weight in weights:
                weight.grad = None
            (run(x) - x[:, :2]).square().mean().backward()
            state.update()
    torch.testing.assert_close(networks[0](mixed(10)), networks[1](mixed(10)), rtol=1e-2, atol=1e-3)
