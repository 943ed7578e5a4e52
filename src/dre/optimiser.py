"""How the weights are moved: Adam, at a constant rate or one that rises and falls once per stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import torch
from torch import Tensor, nn

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
    """Adam and its rates, on the way through one stage."""

    def __init__(self, plan: Optimiser, weights: list[nn.Parameter], lr: float, steps: int, *, recorded: bool) -> None:
        rates = one_cycle(lr, steps) if plan.policy == "one-cycle" else torch.full((steps,), lr, dtype=torch.double)
        self._rates: Iterator[float] | None = None
        if recorded:  # a replay reads and counts on the device, where it once did
            self._all = rates.to(weights[0].device, torch.float32)
            self._at = torch.zeros(1, dtype=torch.long, device=self._all.device)
            self._rate = torch.tensor(lr, device=self._all.device)
        else:
            self._rates = iter(rates.tolist())
        fused = all(p.device.type in ("cpu", "cuda") for p in weights)
        rate = self._rate if recorded else lr
        self.adam = torch.optim.Adam(weights, lr=rate, eps=plan.eps, fused=fused, capturable=recorded)
        self._weights, self._clip = weights, plan.clip

    def update(self) -> None:
        """Move the weights along their gradients."""
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._weights, self._clip)
        if self._rates is None:
            self._rate.copy_(self._all.index_select(0, self._at)[0])
            self._at += 1
        else:
            self.adam.param_groups[0]["lr"] = next(self._rates)
        self.adam.step()


def one_cycle(peak: float, steps: int) -> Tensor:
    """Rates that rise from a 25th of the peak within the first 30 % of the steps, and then fall to nothing, along cosines."""
    at = torch.arange(steps, dtype=torch.double)
    top = max(0.3 * steps - 1, 0.0)  # so few that none is left to rise in begin at the peak
    up = (at / max(top, 1e-9)).clamp_max(1)
    down = ((at - top) / max(steps - 1 - top, 1e-9)).clamp(0, 1)
    start, end = peak / 25, peak / 250_000
    rising = peak + (start - peak) * (1 + torch.cos(math.pi * up)) / 2
    falling = end + (peak - end) * (1 + torch.cos(math.pi * down)) / 2
    return torch.where(at < top, rising, falling)
