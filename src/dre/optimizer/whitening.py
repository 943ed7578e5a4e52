"""Whitened gradients: each linear layer learns as if its inputs were uncorrelated, and needs fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dre.runtime.float64 import near_float64

DAMPING = 0.1  # of the mean variance of the inputs, added to each: rare directions are not amplified without bound
EVERY = 20  # steps between two looks at the covariance, after the first few
FIRST = 5  # steps that each look
SHARE = 0.1  # of a new covariance in the running mean
WIDEST = 512  # inputs of a layer: the inverse of a larger covariance costs more than it gives


class LinearStep(NamedTuple):
    """One linear layer in one step."""

    gradient: Tensor  # (outputs, inputs) of its weight, changed in place
    inputs: Tensor  # (b, inputs)


Layers = Callable[[], Sequence[LinearStep]]  # the layers of the last step
Average = Callable[[Sequence[Tensor]], None]  # over several processes, in place


class Whitening:
    """Multiplies the gradient of each linear layer by the inverse covariance of its inputs.

    This is gradient descent on the outputs of the neurons (Benzing, 2022), the half of a natural gradient that is cheap.

    Parameters
    ----------
    layers : callable
        Returns the layers of the last step.
    average : callable, optional
        Averages covariances over the processes that train the same weights.
    """

    def __init__(self, layers: Layers, average: Average | None = None) -> None:
        self._layers, self._average = layers, average
        self._steps = 0
        self._covariances: list[Tensor] = []
        self._inverses: list[Tensor] = []

    def apply(self) -> None:
        """Change the gradients that ``backward`` left."""
        with torch.no_grad():
            layers = [layer for layer in self._layers() if layer.inputs.shape[1] <= WIDEST]
            if self._steps < FIRST or self._steps % EVERY == 0:
                self._look(layers)
            self._steps += 1
            for layer, inverse in zip(layers, self._inverses, strict=True):
                layer.gradient.copy_(layer.gradient @ inverse)

    def _look(self, layers: Sequence[LinearStep]) -> None:
        found = [layer.inputs.T @ layer.inputs / len(layer.inputs) for layer in layers]
        if self._average is not None:
            self._average(found)
        if self._covariances:
            self._covariances = [old.lerp(new, SHARE) for old, new in zip(self._covariances, found, strict=True)]
        else:
            self._covariances = found
        self._inverses = [_inverse(each) for each in self._covariances]

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the covariances, on the host."""
        return {"steps": self._steps, "covariances": [each.cpu().clone() for each in self._covariances]}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Continue from what ``state_dict`` returned."""
        self._steps, self._covariances = state["steps"], [each.to(device) for each in state["covariances"]]
        self._inverses = [_inverse(each) for each in self._covariances]


def _inverse(covariance: Tensor) -> Tensor:
    """The inverse, damped, and scaled so that white inputs leave a gradient as it is."""
    device, covariance = covariance.device, near_float64(covariance)
    variance = covariance.diagonal().mean().clamp_min(1e-12)
    unit = torch.eye(len(covariance), device=covariance.device)
    factor, failed = torch.linalg.cholesky_ex(covariance + DAMPING * variance * unit)
    # Inputs that are not finite have no covariance. The loss is not finite either, and the loop says so.
    return (unit if bool(failed) else torch.cholesky_inverse(factor) * variance).to(device)


class LinearLayers:
    """Remembers what the linear layers of a module have read in the last step."""

    def __init__(self, module: nn.Module) -> None:
        self._inputs: dict[nn.Linear, Tensor] = {}
        self._hooks = [
            part.register_forward_pre_hook(self._remember) for part in module.modules() if isinstance(part, nn.Linear)
        ]

    def _remember(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Linear)
        if layer.training:
            self._inputs[layer] = inputs[0].detach().flatten(0, -2).float()

    def __call__(self) -> list[LinearStep]:
        """Return the layers of the last step whose weights have a gradient."""
        steps = [(layer.weight.grad, inputs) for layer, inputs in self._inputs.items()]
        return [LinearStep(gradient, inputs) for gradient, inputs in steps if gradient is not None]

    def remove(self) -> None:
        """Let go of the module."""
        for hook in self._hooks:
            hook.remove()
