"""Adam with a constant learning rate, or one that rises and falls once per stage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from dre.notation import Registry, write
from dre.optimizer.whitening import Average, Layers, Whitening

OPTIMIZERS = Registry("optimizer", __name__)
POLICIES = ("constant", "one-cycle")
BETA1 = 0.9  # of Adam
MOMENTS = ("mean", "square")


@dataclass(frozen=True)
class Optimizer:
    """Adam, restarted at each stage. Written ``adam(0.002, policy=constant)``.

    Parameters
    ----------
    lr : float
        Learning rate; the peak of a one-cycle policy.
    eps : float
        Added to the denominator of Adam's update.
    policy : {"one-cycle", "constant"}
        One-cycle warms the rate up and lets it fall to nothing, which needs fewer epochs for the same map.
    clip : float or None
        Largest norm of a gradient; None for no limit.
    beta2 : float
        How much of the mean square of the gradients is kept at each step. Short runs with high rates do better with 0.99.
    warmup : float
        Share of the steps in which a one-cycle rate rises.
    whiten : bool
        Let each linear layer learn as if its inputs were uncorrelated: fewer steps, each of which costs more. Such steps are
        not captured as CUDA graphs.

    Examples
    --------
    >>> str(Optimizer(1e-3, policy="constant"))
    'adam(0.001, policy=constant)'
    """

    lr: float = 2e-3
    _: KW_ONLY
    eps: float = 1e-8
    policy: str = "one-cycle"
    clip: float | None = None
    beta2: float = 0.999
    warmup: float = 0.3
    whiten: bool = False

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"policy={self.policy!r}; known: {', '.join(POLICIES)}")
        for name in ("lr", "eps", "clip"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
                raise ValueError(f"{name}={value!r}: must be a positive number")
        for name in ("beta2", "warmup"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: must lie between 0 and 1")

    @property
    def capturable(self) -> bool:
        """Whether an update can be captured in a CUDA graph."""
        return not self.whiten

    def start(
        self,
        parameters: Iterable[nn.Parameter],
        steps: int,
        *,
        lr: float | None = None,
        captured: bool = False,
        layers: Layers | None = None,
        average: Average | None = None,
    ) -> AdamState:
        """Return the state of Adam for a stage of so many steps.

        ``lr`` overrides the learning rate; ``captured`` if updates are replayed from a CUDA graph; ``layers`` are what
        whitening reads; ``average`` averages gradients over the processes that train the same weights.
        """
        trained = [p for p in parameters if p.requires_grad]
        whitening = Whitening(layers, average) if self.whiten and layers is not None else None
        rate = self.lr if lr is None else lr
        return AdamState(self, trained, rate, steps, captured=captured, whitening=whitening, average=average)

    def __str__(self) -> str:
        return write(self, "adam")


OPTIMIZERS.add("adam", Optimizer)


class AdamState:
    """Adam's moments and learning rates on the way through one stage.

    It calls torch's functional Adam: constructing ``torch.optim.Adam`` imports torch's compiler, which takes seconds.
    """

    def __init__(
        self,
        plan: Optimizer,
        weights: list[nn.Parameter],
        lr: float,
        steps: int,
        *,
        captured: bool,
        whitening: Whitening | None = None,
        average: Average | None = None,
    ) -> None:
        rates = (
            one_cycle(lr, steps, plan.warmup) if plan.policy == "one-cycle" else torch.full((steps,), lr, dtype=torch.double)
        )
        self.rate: float | Tensor = lr  # of the last update
        self._rates, self._position = rates.tolist(), 0
        if captured:  # a replayed update reads its rate, and counts, on the device
            self._device_rates = rates.to(weights[0].device, torch.float32)
            self._device_position = torch.zeros(1, dtype=torch.long, device=self._device_rates.device)
            self.rate = torch.tensor(lr, device=self._device_rates.device)
        self._plan, self._captured, self._whitening, self._average = plan, captured, whitening, average
        self._fused = all(p.device.type in ("cpu", "cuda") for p in weights)
        self._moments = [_Moments(p, fused=self._fused or captured) for p in weights]

    def update(self) -> None:
        """Move the weights along the gradients that ``backward`` left in them."""
        moved = [one for one in self._moments if one.weight.grad is not None]
        if self._average is not None:
            self._average([one.weight.grad for one in moved if one.weight.grad is not None])
        if self._whitening is not None:
            self._whitening.apply()
        if self._plan.clip is not None:
            nn.utils.clip_grad_norm_([one.weight for one in moved], self._plan.clip)
        if isinstance(self.rate, Tensor):
            position = self._device_position.clamp_max(len(self._rates) - 1)
            self.rate.copy_(self._device_rates.index_select(0, position)[0])
            self._device_position += 1
        else:
            self.rate = self._rates[min(self._position, len(self._rates) - 1)]
            self._position += 1
        with torch.no_grad():
            adam(
                [one.weight for one in moved],
                [one.weight.grad for one in moved if one.weight.grad is not None],
                [one.mean for one in moved],
                [one.square for one in moved],
                [],
                [one.steps for one in moved],
                fused=self._fused,
                capturable=self._captured,
                amsgrad=False,
                beta1=BETA1,
                beta2=self._plan.beta2,
                lr=self.rate,
                weight_decay=0.0,
                eps=self._plan.eps,
                maximize=False,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the schedule of rates and Adam's moments, on the host."""
        # All weights in a row: whether they lie in one buffer depends on the machine.
        moments = {name: torch.cat([_on_host(getattr(one, name)).ravel() for one in self._moments]) for name in MOMENTS}
        position = int(self._device_position) if self._captured else self._position
        steps = torch.stack([_on_host(one.steps) for one in self._moments])
        whitening = None if self._whitening is None else self._whitening.state_dict()
        return {"position": position, **moments, "steps": steps, "whitening": whitening}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what ``state_dict`` returned."""
        self._position = min(state["position"], len(self._rates) - 1)  # other ranks may have had a step more
        if self._captured:
            self._device_position.fill_(self._position)
        for name in MOMENTS:
            saved = state[name].split([one.weight.numel() for one in self._moments])
            for one, part in zip(self._moments, saved, strict=True):
                getattr(one, name).copy_(part.view_as(one.weight))
        steps = state["steps"]
        for i, one in enumerate(self._moments):
            one.steps.copy_(steps[i] if len(steps) == len(self._moments) else steps.max())
        if self._whitening is not None and state["whitening"] is not None:
            self._whitening.load_state_dict(state["whitening"], self._moments[0].weight.device)


class _Moments:
    """A weight, and what Adam remembers of its gradients."""

    def __init__(self, weight: nn.Parameter, *, fused: bool) -> None:
        self.weight = weight
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.steps = torch.zeros((), device=weight.device if fused else None)


def _on_host(x: Tensor) -> Tensor:
    return x.detach().cpu().clone()


def one_cycle(peak: float, steps: int, warmup: float = 0.3) -> Tensor:
    """Rates that rise from a 25th of the peak within the first share of the steps and then fall to nothing, along cosines."""
    at = torch.arange(steps, dtype=torch.double)
    top = max(warmup * steps - 1, 0.0)  # with too few steps to rise in, begin at the peak
    up = (at / max(top, 1e-9)).clamp_max(1)
    down = ((at - top) / max(steps - 1 - top, 1e-9)).clamp(0, 1)
    start, end = peak / 25, peak / 250_000
    rising = peak + (start - peak) * (1 + torch.cos(math.pi * up)) / 2
    falling = end + (peak - end) * (1 + torch.cos(math.pi * down)) / 2
    return torch.where(at < top, rising, falling)
