"""How the weights are moved: Adam, at a constant rate or one that rises and falls once per stage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

POLICIES = ("constant", "one-cycle")


@dataclass(frozen=True)
class Optimiser:
    """Adam, started anew at each stage."""

    lr: float = 2e-3
    _: KW_ONLY
    eps: float = 1e-8
    policy: str = "one-cycle"  # the rate warms up, then falls to nothing: fewer epochs for the same map
    clip: float | None = None  # the largest norm of a gradient; None: no limit

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"policy={self.policy!r}; known: {', '.join(POLICIES)}")
        for name in ("lr", "eps", "clip"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
                raise ValueError(f"{name}={value!r}: must be a positive number")

    def start(self, parameters: Iterable[nn.Parameter], lr: float, steps: int, *, recorded: bool = False) -> Descent:
        """What makes the steps of one stage; ``recorded`` where they are to be replayed on a GPU as they were once made."""
        return Descent(self, [p for p in parameters if p.requires_grad], lr, steps, recorded=recorded)


class Descent:
    """Adam and its rate, on the way through one stage."""

    def __init__(self, plan: Optimiser, weights: list[nn.Parameter], lr: float, steps: int, *, recorded: bool) -> None:
        fused = all(p.device.type in ("cpu", "cuda") for p in weights)
        rate = torch.tensor(lr, device=weights[0].device) if recorded else lr  # a replay reads the rate where it once was
        self.adam = torch.optim.Adam(weights, lr=rate, eps=plan.eps, fused=fused, capturable=recorded)
        cycle = plan.policy == "one-cycle"
        # The rate alone: momentum is a plain number, and a replay would keep that of the step which was recorded.
        self._rate = OneCycleLR(self.adam, lr, total_steps=max(2, steps), cycle_momentum=False) if cycle else None
        self._weights, self._clip = weights, plan.clip

    def update(self) -> None:
        """Move the weights along their gradients."""
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._weights, self._clip)
        self.adam.step()

    def next_rate(self) -> None:
        """After every update; never recorded."""
        if self._rate is not None:
            self._rate.step()
