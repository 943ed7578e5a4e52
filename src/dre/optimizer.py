"""How the weights are moved: Adam, at a constant rate or one that rises and falls once per stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

POLICIES = ("constant", "one-cycle")
BETAS = (0.9, 0.999)  # of Adam


@dataclass(frozen=True)
class Optimizer:
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

    def start(self, parameters: Iterable[nn.Parameter], lr: float, steps: int, *, captured: bool = False) -> AdamState:
        """What makes the steps of one stage; ``recorded`` where they are to be replayed on a GPU as they were once made."""
        return AdamState(self, [p for p in parameters if p.requires_grad], lr, steps, captured=captured)


class AdamState:
    """Adam and its rates, on the way through one stage.

    The function of torch, not its class: to make one of that class imports torch's compiler, which takes seconds.
    """

    def __init__(self, plan: Optimizer, weights: list[nn.Parameter], lr: float, steps: int, *, captured: bool) -> None:
        rates = one_cycle(lr, steps) if plan.policy == "one-cycle" else torch.full((steps,), lr, dtype=torch.double)
        self.rate: float | Tensor = lr  # of the step that was made last
        self._rates: Iterator[float] | None = None
        if captured:  # a replay reads and counts on the device, where it once did
            self._all = rates.to(weights[0].device, torch.float32)
            self._at = torch.zeros(1, dtype=torch.long, device=self._all.device)
            self.rate = torch.tensor(lr, device=self._all.device)
        else:
            self._rates = iter(rates.tolist())
        self._plan, self._recorded = plan, captured
        self._fused = all(p.device.type in ("cpu", "cuda") for p in weights)
        self._moments = [_Moments(p, fused=self._fused or captured) for p in weights]

    def update(self) -> None:
        """Move the weights along their gradients."""
        moved = [one for one in self._moments if one.weight.grad is not None]
        if self._plan.clip is not None:
            nn.utils.clip_grad_norm_([one.weight for one in moved], self._plan.clip)
        if self._rates is not None:
            self.rate = next(self._rates)
        elif isinstance(self.rate, Tensor):
            self.rate.copy_(self._all.index_select(0, self._at)[0])
            self._at += 1
        with torch.no_grad():
            adam(
                [one.weight for one in moved],
                [one.weight.grad for one in moved if one.weight.grad is not None],
                [one.mean for one in moved],
                [one.square for one in moved],
                [],
                [one.steps for one in moved],
                fused=self._fused,
                capturable=self._recorded,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=self.rate,
                weight_decay=0.0,
                eps=self._plan.eps,
                maximize=False,
            )


class _Moments:
    """A weight, and what Adam remembers of its gradients."""

    def __init__(self, weight: nn.Parameter, *, fused: bool) -> None:
        self.weight = weight
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.steps = torch.zeros((), device=weight.device if fused else None)


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
