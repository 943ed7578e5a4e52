"""A restricted Boltzmann machine, trained by contrastive divergence (Hinton 2002; Hinton and Salakhutdinov 2006)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from dre.baselines.bar import Tick
from dre.baselines.diverged import check_error
from dre.batches import Shuffled
from dre.runtime import full_float32

REMEDY = "scale the rows to [0, 1], or lower the rate of ContrastiveDivergence"


class Change(NamedTuple):
    """A direction in the parameters of a machine, and how well the rows were reconstructed on the way."""

    weight: Tensor  # (v, h)
    visible: Tensor  # (v,)
    hidden: Tensor  # (h,)
    error: Tensor  # mean squared, over all values


@dataclass(eq=False)
class RBM:
    """E(v, h) = -b·v - c·h - vᵀWh, with v and h in {0, 1}; values between 0 and 1 stand for probabilities.

    With ``linear`` hidden units h is real, with the energy |h|²/2 - c·h - b·v - vᵀWh: given v it is Gaussian around c + Wᵀv
    with the variance 1.
    """

    weight: Tensor  # (v, h) W
    visible: Tensor  # (v,) b
    hidden: Tensor  # (h,) c
    _: KW_ONLY
    linear: bool = False
    errors: list[float] = field(default_factory=list)  # of reconstruction, one per epoch of training

    @classmethod
    def blank(cls, visible: int, hidden: int, generator: torch.Generator, *, linear: bool = False) -> RBM:
        """Small random weights, and no biases."""
        weight = 0.1 * torch.randn(visible, hidden, generator=generator, device=generator.device)
        return cls(weight, weight.new_zeros(visible), weight.new_zeros(hidden), linear=linear)

    def up(self, v: Tensor) -> Tensor:
        """The mean of h given v: (n, v) to (n, h)."""
        total = torch.addmm(self.hidden, v, self.weight)
        return total if self.linear else total.sigmoid_()

    def down(self, h: Tensor) -> Tensor:
        """The mean of v given h: (n, h) to (n, v)."""
        return torch.addmm(self.visible, h, self.weight.T).sigmoid_()

    def sample(self, h: Tensor, generator: torch.Generator) -> Tensor:
        """Hidden states whose means are h."""
        if self.linear:
            return h + torch.randn(h.shape, generator=generator, device=h.device)
        return (torch.rand(h.shape, generator=generator, device=h.device) < h).float()

    def free_energy(self, v: Tensor) -> Tensor:
        """F(v) = -log Σh exp(-E(v, h)), up to a constant that is the same for all v: (n, v) to (n,)."""
        total = torch.addmm(self.hidden, v, self.weight)
        gain = total.square() / 2 if self.linear else torch.nn.functional.softplus(total)
        return -v @ self.visible - gain.sum(1)

    def divergence(self, v: Tensor, generator: torch.Generator) -> Change:
        """CD-1: up, down and up again. What the rows give minus what their reconstructions give, per row.

        States are drawn on the way down alone; elsewhere means stand in for them, which says the same with less noise.
        """
        h = self.up(v)
        back = self.down(self.sample(h, generator))
        again = self.up(back)
        weight = torch.addmm(v.T @ h, back.T, again, alpha=-1)
        n = len(v)
        return Change(weight / n, (v - back).mean(0), (h - again).mean(0), (v - back).square().mean())


@dataclass(frozen=True)
class ContrastiveDivergence:
    """How a machine is trained, as van der Maaten (2009) did."""

    epochs: int = 30
    _: KW_ONLY
    batch_size: int = 100
    rate: float = 0.1
    linear_rate: float = 1e-3  # real-valued units have no bound that would hold large steps back
    momentum: tuple[float, float] = (0.5, 0.9)  # before and after the first epochs, when the weights still turn
    early: int = 5  # epochs with the first momentum
    decay: float = 2e-4  # of the weights, not of the biases

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ValueError(f"epochs={self.epochs}, batch_size={self.batch_size}: both must be at least 1")

    def steps(self, n: int) -> int:
        """In an epoch over n rows."""
        return Shuffled(max(2, self.batch_size)).steps(n)

    def train(self, machine: RBM, v: Tensor, generator: torch.Generator, tick: Tick = lambda: None) -> RBM:
        """The machine after training on rows v (n, v) in [0, 1]; the one handed in stays as it was."""
        weight, visible, hidden = machine.weight.clone(), machine.visible.clone(), machine.hidden.clone()
        machine = RBM(weight, visible, hidden, linear=machine.linear)
        moving = [torch.zeros_like(p) for p in (weight, visible, hidden)]
        with full_float32(), torch.no_grad():
            for epoch in range(self.epochs):
                order = torch.randperm(len(v), generator=generator, device=generator.device)
                error = torch.zeros((), device=v.device)
                parts = torch.tensor_split(order, self.steps(len(v)))
                for ids in parts:
                    change = machine.divergence(v[ids], generator)
                    self._move(machine, moving, change, self.momentum[epoch >= self.early])
                    error += change.error
                    tick()
                machine.errors.append(float(error) / len(parts))
                check_error(machine.errors[-1], epoch, of="the reconstruction error of a Boltzmann machine", remedy=REMEDY)
        return machine

    def _move(self, machine: RBM, moving: list[Tensor], change: Change, momentum: float) -> None:
        rate = self.linear_rate if machine.linear else self.rate
        parameters = (machine.weight, machine.visible, machine.hidden)
        for p, moved, wanted in zip(parameters, moving, change[:3], strict=True):
            moved.mul_(momentum).add_(wanted, alpha=rate)
            if p is machine.weight:
                moved.add_(p, alpha=-rate * self.decay)
            p.add_(moved)
