"""The events of a run, in the order in which they come; observers consume them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dre.affinity.target import Target
from dre.batches import Batches
from dre.training.run import Run, Weights


@dataclass(frozen=True)
class TargetBegan:
    """The neighbors of a source are about to be searched, which can take a while."""

    run: Run


@dataclass(frozen=True)
class CoordinatesMoved:
    """Free coordinates of all rows have made one of their steps, before the network follows them."""

    run: Run
    step: int  # from 1 up


@dataclass(frozen=True)
class StageBegan:
    """The target is ready, and the first step comes next."""

    run: Run
    target: Target
    batches: Batches  # the way of sampling that was selected
    steps: int  # in all epochs that are left
    seconds: float  # that the target took
    free_seconds: float = 0.0  # that the free steps took


@dataclass(frozen=True)
class StepEnded:
    """One step is done. The loss stays on the device: reading it makes the host wait."""

    run: Run
    loss: Tensor
    rows: int


@dataclass(frozen=True)
class EpochEnded:
    """An epoch is done; ``loss`` is the mean over its steps."""

    run: Run
    loss: float
    rows: int
    seconds: float


@dataclass(frozen=True)
class StageEnded:
    """A stage is done, or was ended early."""

    run: Run
    weights: Weights
    trust: tuple[float, float] | None = None  # of the map before and after an optional stage


@dataclass(frozen=True)
class StageUndone:
    """An optional stage has cost trustworthiness. The weights before it are back, and the fit ends."""

    run: Run
    trust: tuple[float, float]  # trustworthiness before and after it


@dataclass(frozen=True)
class StageSkipped:
    """An optional stage is not begun, and the fit ends: the map draws its neighborhoods no better than those before."""

    run: Run
    loss: tuple[float, float]  # of the map on the neighborhoods of the stage before, and of this one


Event = TargetBegan | CoordinatesMoved | StageBegan | StepEnded | EpochEnded | StageEnded | StageUndone | StageSkipped
