"""The running state of a training run: its parts, its position, and what is needed to resume it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dre.affinity.bank import Bank
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Coordinates, Target
from dre.data.metric import RowMetric, row_metric
from dre.data.rows import Rows
from dre.encoder.dense_pass import DensePass
from dre.loss import Loss
from dre.loss.follow import Follow
from dre.neighbors.search import Neighbors
from dre.optimizer import AdamState
from dre.plan.recipe import Recipe
from dre.plan.schedule import Stage
from dre.runtime import IsolatedRNG, RandomStreams, Runtime
from dre.runtime.ranks import AGREED, ALONE, Ranks
from dre.training.learner import Learner

Weights = dict[str, Tensor]
FOLLOW = Follow()
EUCLIDEAN = row_metric("euclidean")
NOT_PASSED = -1  # as the position of a row that a map remembers from an earlier call


@dataclass(frozen=True, eq=False)
class Origin:
    """The rows and the seed of the user that a run was made of, before they were scaled or spread; observers read them."""

    rows: Any  # as they were passed, a sample of them, or this rank's share
    metric: RowMetric = EUCLIDEAN  # between these rows
    ids: Any = None  # position of each in the data of the user, or NOT_PASSED; None: 0, 1, 2, …
    standardized: Callable[[Tensor], Tensor] | None = None  # the rows as the metric compares them
    random_state: Any = None  # of the user, from which the seed of the run comes


@dataclass
class EpochProgress:
    """The part of an epoch that is done."""

    loss: Tensor  # summed over its steps, on the device
    steps: int = 0
    rows: int = 0
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def add(self, loss: Tensor, rows: int) -> None:
        """Count a step."""
        self.loss, self.steps, self.rows = self.loss + loss, self.steps + 1, self.rows + rows

    def state_dict(self) -> dict[str, Any]:
        """Return it as numbers and a tensor on the host."""
        return {"loss": self.loss.cpu(), "steps": self.steps, "rows": self.rows, "seconds": self.seconds}

    @classmethod
    def of(cls, state: dict[str, Any], device: torch.device) -> EpochProgress:
        """Continue from what ``state_dict`` returned."""
        return cls(state["loss"].to(device), state["steps"], state["rows"], time.perf_counter() - state["seconds"])


@dataclass
class Run:
    """The running state that every event carries. Observers read it, and may ask the run to end."""

    encoder: nn.Module
    rows: Rows
    recipe: Recipe
    runtime: Runtime
    streams: RandomStreams
    learner: Learner
    generator: torch.Generator  # augmentations draw from it; it is seeded again at each epoch
    ranks: Ranks = ALONE
    order: Tensor | None = None  # position among all rows of those of all ranks; None: as they are numbered
    origin: Origin | None = None  # of the rows, if it is known
    labels: Tensor | None = None
    neighbors: Neighbors | None = None  # of the input, if the user passed them
    radius: Tensor | None = None  # of each row's neighborhood, if an augmentation reads it
    landmarks: Landmarks | None = None  # of the input, if a loss reads them
    anchors: Tensor | None = None  # coordinates that rows must keep while those of others are free; NaN for the others
    target: Target | None = None  # what the steps match at present; None until a stage has found it
    moving: Tensor | None = None  # free coordinates of all rows while they move, (n_components, n)
    rng: IsolatedRNG | None = None  # an encoder that draws at random does so from it (dropout); new at each epoch
    dense: DensePass | None = None  # in place of the trained part, where it is faster
    has_large_steps: bool = False  # of which all threads of torch compute each operation
    weights_to_train: list[nn.Parameter] = field(default_factory=list)
    optimizer: AdamState | None = None
    stage: int = 0
    epoch: int = 0  # within the stage
    steps: int = 0  # in all
    ending: str | None = None  # None, "stage" or "fit"
    is_unfrozen: bool = False  # whether the weights of a backbone are trained in this stage
    target_weights: Weights = field(default_factory=dict)  # from which the current target was computed
    start_weights: Weights = field(default_factory=dict)  # at the start of an optional stage, which may be undone
    map_loss: float | None = None  # of the map after the last stage, by the loss of the next one if that is optional
    resume_at: tuple[int, int] = (0, 0)  # stage and epoch that come next, or that go on
    progress: EpochProgress | None = None  # of the epoch; None between epochs
    resumed: dict[str, Any] | None = None  # the state that the run continues from, until the epoch in it has begun again

    @property
    def current_stage(self) -> Stage:
        return self.recipe.schedule[self.stage]

    @property
    def is_following(self) -> bool:
        """Whether the encoder follows coordinates in this epoch; the loss comes later."""
        return self.epoch < self.current_stage.follow

    @property
    def against(self) -> str:
        """What this epoch compares the batch with: "coordinates", "batch" or "bank"."""
        return "coordinates" if self.is_following else self.current_stage.against

    @property
    def loss(self) -> Loss:
        """The loss of this epoch."""
        return FOLLOW if self.is_following else self.current_stage.loss

    @property
    def is_captured(self) -> bool:
        """Whether steps are captured as CUDA graphs: all their parts must declare that they can be."""
        recipe = self.recipe
        parts = (recipe.encoder, recipe.augment, recipe.batches, recipe.optimizer, self.loss)
        return (
            self.runtime.captures
            and self.ranks.captures
            and all(part is None or getattr(part, "capturable", False) for part in parts)
        )

    @property
    def n_rows(self) -> int:
        """Number of rows of all ranks."""
        return self.rows.shape[0] * self.ranks.size

    @property
    def first_row(self) -> int:
        """Number of this rank's first row among those of all ranks."""
        return self.rows.shape[0] * self.ranks.rank

    def ends(self, step: int = 0) -> bool:
        """Whether the stage or the fit ends here. Ranks end together: they ask each other before a step in every few."""
        if self.ranks.is_connected and step % AGREED == 0:
            self.ending = self.ranks.ending(self.ending)
            return self.ending is not None
        return self.ending is not None and not self.ranks.is_connected

    def average_buffers(self) -> None:
        """Give all ranks the same statistics of batch norm: the means of theirs."""
        learning = [part for part in self.encoder.modules() if part.training]  # a backbone keeps its statistics
        buffers = [each for part in learning for each in part.buffers(recurse=False)]
        self.ranks.average([each for each in buffers if each.is_floating_point()])

    def end_stage(self) -> None:
        self.ending = self.ending or "stage"

    def end_fit(self) -> None:
        self.ending = "fit"

    def weights(self) -> Weights:
        """Return a copy of the encoder's weights, on the host."""
        return {name: value.detach().cpu().clone() for name, value in self.encoder.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """Return all that ``train(..., resume=state)`` needs to continue: tensors on the host, numbers and texts.

        It can be called whenever an event arrives.
        """
        if self.resumed is not None:
            return self.resumed
        stage, epoch = self.resume_at
        is_within = stage == self.stage < len(self.recipe.schedule)  # else the stage has ended
        follow = self.current_stage.follow if is_within else 0
        # The network has coordinates of its own at the start of a phase, but for those that it is going to follow.
        coordinates = self._coordinates() if is_within and (self.progress is not None or epoch != follow) else None
        begun = is_within and (epoch > 0 or self.progress is not None or coordinates is not None)
        keeps_moments = is_within and (self.progress is not None or epoch not in (0, follow)) and self.optimizer is not None
        return {
            "stage": stage,
            "epoch": epoch,
            "steps": self.steps,
            "seed": self.streams.seed,
            "schedule": str(self.recipe.schedule),
            "begun": begun,
            "weights": self.weights(),
            "target_weights": self.target_weights if begun else {},
            "start_weights": self.start_weights if begun else {},
            "map_loss": self.map_loss,
            "coordinates": coordinates,
            "radius": None if self.radius is None or self.ranks.is_connected else self.radius.cpu(),
            "optimizer": self.optimizer.state_dict() if keeps_moments and self.optimizer is not None else None,
            "progress": None if self.progress is None else self.progress.state_dict() | self._random_states(),
        }

    def _random_states(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state(), "rng": None if self.rng is None else self.rng.state}

    def resume_epoch(self, state: dict[str, Any]) -> EpochProgress:
        """Put back the random states within an epoch, and return the part of it that is done."""
        self.generator.set_state(state["generator"])
        if self.rng is not None:
            self.rng.state = state["rng"]
        return EpochProgress.of(state, self.runtime.device)

    def _coordinates(self) -> Tensor | None:
        """Return what the target knows about the coordinates of all rows, on the host, in the order of the data."""
        if isinstance(self.target, Coordinates):
            return self._in_order(self.target.values.cpu())
        return self._in_order(self.target.columns.T.cpu().contiguous()) if isinstance(self.target, Bank) else None

    def _in_order(self, coordinates: Tensor) -> Tensor:
        if self.order is None:
            return coordinates
        out = torch.full((int(self.order.max()) + self.ranks.size, coordinates.shape[1]), torch.nan)
        out[self.order] = coordinates
        return out

    def resume_coordinates(self, saved: Tensor | None) -> Tensor | None:
        """Return the coordinates of a state as they are numbered here; a row that had none gets its place in the map."""
        if saved is None:
            return None
        coordinates = (saved[: self.n_rows] if self.order is None else saved[self.order]).to(self.runtime.device)
        missing = coordinates.isnan().any(1)
        if bool(missing.any()):
            coordinates[missing] = self.ranks.gather(self.learner.embedding())[missing]
        return coordinates
