"""How the weights are moved: Adam, at a constant rate or one that rises and falls once per stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import torch
from torch import nn

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

    def start(self, parameters: Iterable[nn.Parameter], lr: float, steps: int) -> tuple[torch.optim.Adam, Callable[[], None]]:
        """The optimiser of one stage, and what makes one step with it."""
        weights = [p for p in parameters if p.requires_grad]
        fused = all(p.device.type in ("cpu", "cuda") for p in weights)
        adam = torch.optim.Adam(weights, lr=lr, eps=self.eps, fused=fused)
        cycle = torch.optim.lr_scheduler.OneCycleLR(adam, lr, total_steps=max(2, steps)) if self.policy == "one-cycle" else None

        def step() -> None:
            if self.clip is not None:
                nn.utils.clip_grad_norm_(weights, self.clip)
            adam.step()
            if cycle is not None:
                cycle.step()

        return adam, step
