"""A restricted Boltzmann machine, trained by contrastive divergence (Hinton 2002; Hinton and Salakhutdinov 2006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from dre.baselines.sklearn_api import check_finite
from dre.batches import Shuffled
from dre.runtime import full_float32

REMEDY = "scale the rows to [0, 1], or lower the learning_rate of ContrastiveDivergence"


class Gradient(NamedTuple):
    """The CD-1 estimate of the gradient, and the reconstruction error."""

    weight: Tensor  # (v, h)
    visible_bias: Tensor  # (v,)
    hidden_bias: Tensor  # (h,)
    error: Tensor  # mean squared error over all values


@dataclass(eq=False)
class RBM:
    """E(v, h) = -b·v - c·h - vᵀWh, with v and h in {0, 1}; values between 0 and 1 stand for probabilities.

    With ``linear`` hidden units h is real, with energy |h|²/2 - c·h - b·v - vᵀWh: given v it is Gaussian with mean c + Wᵀv
    and variance 1.
    """

    weight: Tensor  # (v, h) W
    visible_bias: Tensor  # (v,) b
    hidden_bias: Tensor  # (h,) c
    _: KW_ONLY
    linear: bool = False
    errors: list[float] = field(default_factory=list)  # reconstruction error of each training epoch

    @classmethod
    def initialize(cls, n_visible: int, n_hidden: int, generator: torch.Generator, *, linear: bool = False) -> RBM:
        """Return a machine with small random weights and zero biases."""
        weight = 0.1 * torch.randn(n_visible, n_hidden, generator=generator, device=generator.device)
        return cls(weight, weight.new_zeros(n_visible), weight.new_zeros(n_hidden), linear=linear)

    def up(self, v: Tensor) -> Tensor:
        """Return the mean of h given v: (n, v) to (n, h)."""
        total = torch.addmm(self.hidden_bias, v, self.weight)
        return total if self.linear else total.sigmoid_()

    def down(self, h: Tensor) -> Tensor:
        """Return the mean of v given h: (n, h) to (n, v)."""
        return torch.addmm(self.visible_bias, h, self.weight.T).sigmoid_()

    def sample(self, h: Tensor, generator: torch.Generator) -> Tensor:
        """Sample hidden states with means h."""
        if self.linear:
            return h + torch.randn(h.shape, generator=generator, device=h.device)
        return (torch.rand(h.shape, generator=generator, device=h.device) < h).float()

    def free_energy(self, v: Tensor) -> Tensor:
        """Return F(v) = -log Σh exp(-E(v, h)) up to a constant: (n, v) to (n,)."""
        total = torch.addmm(self.hidden_bias, v, self.weight)
        gain = total.square() / 2 if self.linear else torch.nn.functional.softplus(total)
        return -v @ self.visible_bias - gain.sum(1)

    def gradient(self, v: Tensor, generator: torch.Generator) -> Gradient:
        """Return the CD-1 gradient: the statistics of the rows minus those of their reconstructions, per row.

        Only the downward pass samples states; elsewhere means replace them, which has the same expectation and less noise.
        """
        h = self.up(v)
        v_recon = self.down(self.sample(h, generator))
        h_recon = self.up(v_recon)
        weight = torch.addmm(v.T @ h, v_recon.T, h_recon, alpha=-1)
        n = len(v)
        return Gradient(weight / n, (v - v_recon).mean(0), (h - h_recon).mean(0), (v - v_recon).square().mean())


@dataclass(frozen=True)
class ContrastiveDivergence:
    """Training by CD-1 with the settings of van der Maaten (2009)."""

    epochs: int = 30
    _: KW_ONLY
    batch_size: int = 100
    learning_rate: float = 0.1
    linear_learning_rate: float = 1e-3  # for linear units, whose unbounded values make large steps diverge
    momentum: tuple[float, float] = (0.5, 0.9)  # in the first epochs, where gradients still change direction, and after
    early_epochs: int = 5  # epochs with the first momentum
    weight_decay: float = 2e-4  # of the weights, not of the biases

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ValueError(f"epochs={self.epochs}, batch_size={self.batch_size}: both must be at least 1")

    def steps(self, n: int) -> int:
        """Return the number of steps of an epoch over n rows."""
        return Shuffled(max(2, self.batch_size)).steps(n)

    def train(self, machine: RBM, v: Tensor, generator: torch.Generator, tick: Callable[[], object] = lambda: None) -> RBM:
        """Return a trained copy of the machine, for rows v (n, v) in [0, 1]; ``tick`` is called after each step."""
        weight, visible_bias, hidden_bias = machine.weight.clone(), machine.visible_bias.clone(), machine.hidden_bias.clone()
        machine = RBM(weight, visible_bias, hidden_bias, linear=machine.linear)
        velocity = [torch.zeros_like(p) for p in (weight, visible_bias, hidden_bias)]
        with full_float32(), torch.no_grad():
            for epoch in range(self.epochs):
                order = torch.randperm(len(v), generator=generator, device=generator.device)
                error = torch.zeros((), device=v.device)
                parts = torch.tensor_split(order, self.steps(len(v)))
                for ids in parts:
                    gradient = machine.gradient(v[ids], generator)
                    self._update(machine, velocity, gradient, self.momentum[epoch >= self.early_epochs])
                    error += gradient.error
                    tick()
                machine.errors.append(float(error) / len(parts))
                check_finite(machine.errors[-1], epoch, name="the reconstruction error of an RBM", remedy=REMEDY)
        return machine

    def _update(self, machine: RBM, velocity: list[Tensor], gradient: Gradient, momentum: float) -> None:
        lr = self.linear_learning_rate if machine.linear else self.learning_rate
        parameters = (machine.weight, machine.visible_bias, machine.hidden_bias)
        for p, v, g in zip(parameters, velocity, gradient[:3], strict=True):
            v.mul_(momentum).add_(g, alpha=lr)
            if p is machine.weight:
                v.add_(p, alpha=-lr * self.weight_decay)
            p.add_(v)
