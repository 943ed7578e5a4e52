"""The only training loop: a generator of plain events that executes a recipe on rows."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from dre.affinity.target import Graph, InBatch, Target
from dre.batches import Batch, Batches
from dre.data.rows import Rows, is_on_device
from dre.encoder.forward import INPUT, check_sources, hidden_outputs
from dre.loss import Step
from dre.neighbors.search import Neighbors, nearest
from dre.optimizer import AdamState
from dre.plan.recipe import Recipe
from dre.plan.schedule import Stage
from dre.runtime import IsolatedRNG, RandomStreams, Runtime
from dre.training.cuda_graphs import GraphCapture
from dre.training.learner import FEATURES, Learner, make_learner
from dre.training.stepper import CapturedStepper, EagerStepper, PrefetchStepper, Stepper, StepResult

Weights = dict[str, Tensor]

# Rows among which an exact search is quick. Beyond, each row has its neighbors in a random part of the rows: as good a sample
# of the data, at a cost that grows with the rows and not with their square.
SEARCHED = {"cuda": 2**20}


class DivergedError(RuntimeError):
    """The loss became NaN or infinite."""


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
    labels: Tensor | None = None
    neighbors: Neighbors | None = None  # of the input, if the user passed them
    rng: IsolatedRNG | None = None  # the encoder draws from it (dropout); new at each epoch
    optimizer: AdamState | None = None
    stage: int = 0
    epoch: int = 0  # within the stage
    steps: int = 0  # in all
    ending: str | None = None  # None, "stage" or "fit"
    target_weights: Weights = field(default_factory=dict)  # from which the current target was computed
    resume_at: tuple[int, int] | None = None  # stage and epoch that come next; None within an epoch

    @property
    def current_stage(self) -> Stage:
        return self.recipe.schedule[self.stage]

    @property
    def is_captured(self) -> bool:
        """Whether steps are captured as CUDA graphs: all their parts must declare that they can be."""
        recipe = self.recipe
        parts = (recipe.encoder, recipe.augment, recipe.batches, self.current_stage.loss)
        return self.runtime.captures and all(part is None or getattr(part, "capturable", False) for part in parts)

    def end_stage(self) -> None:
        self.ending = self.ending or "stage"

    def end_fit(self) -> None:
        self.ending = "fit"

    def weights(self) -> Weights:
        """Return a copy of the encoder's weights, on the host."""
        return {name: value.detach().cpu().clone() for name, value in self.encoder.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """Return all that ``train(..., resume=state)`` needs to continue: tensors on the host, numbers and texts.

        A run can be saved between epochs, not within one: when an event other than ``StepEnded`` arrives.
        """
        if self.resume_at is None:
            raise RuntimeError("state_dict() was called within an epoch: wait for EpochEnded")
        stage, epoch = self.resume_at
        return {
            "stage": stage,
            "epoch": epoch,
            "steps": self.steps,
            "seed": self.streams.seed,
            "schedule": str(self.recipe.schedule),
            "weights": self.weights(),
            "target_weights": self.target_weights if epoch else {},
            "optimizer": self.optimizer.state_dict() if epoch and self.optimizer is not None else None,
        }


@dataclass(frozen=True)
class TargetBegan:
    """The neighbors of a source are about to be searched, which can take a while."""

    run: Run


@dataclass(frozen=True)
class StageBegan:
    """The target is ready, and the first step comes next."""

    run: Run
    target: Target
    batches: Batches  # the way of sampling that was selected
    seconds: float  # that the target took


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


Event = TargetBegan | StageBegan | StepEnded | EpochEnded | StageEnded


def train(
    encoder: nn.Module,
    rows: Rows,
    recipe: Recipe,
    *,
    n_components: int,
    runtime: Runtime,
    seed: int,
    mean: Tensor | None = None,
    labels: Tensor | None = None,
    neighbors: Neighbors | None = None,
    resume: dict[str, Any] | None = None,
) -> Iterator[Event]:
    """Execute the recipe's schedule on the encoder, in place, and yield events.

    The caller may stop asking for events at any moment: the encoder then has the weights of that moment.

    Parameters
    ----------
    encoder : nn.Module
        From rows to ``n_components`` values.
    rows : Rows
        Scaled rows.
    recipe : Recipe
    n_components : int
    runtime : Runtime
    seed : int
        The same seed gives the same bits on the same CPU.
    mean : Tensor, optional
        Mean of the rows before they were centered, at their scale: augmentations of images need it.
    labels : Tensor of shape (n,), optional
        For losses that read labels.
    neighbors : Neighbors, optional
        Neighbors of the input, in place of a search.
    resume : dict, optional
        What ``Run.state_dict()`` returned. The run continues there and ends, on a CPU, in the same bits as one that was not
        interrupted.

    Yields
    ------
    TargetBegan, StageBegan, StepEnded, EpochEnded or StageEnded
    """
    recipe = recipe.clamp_to(rows.shape[0])
    _check(recipe, rows, has_labels=labels is not None, has_neighbors=neighbors is not None)
    sources = [name for stage in recipe.schedule for name in (stage.source, *stage.loss.reads_hidden)]
    check_sources(encoder, list(dict.fromkeys(sources)), rows, n_components)
    if resume is not None:
        _check_resume(resume, recipe, seed)
        encoder.load_state_dict(resume["weights"])
    device = runtime.device
    streams = RandomStreams(seed, device)
    mean = torch.zeros(rows.shape[1:], device=device) if mean is None else mean.to(device)
    learner = make_learner(encoder, rows, recipe.augment, mean, streams.generator("front"))
    labels = None if labels is None else labels.to(device)
    run = Run(encoder.train(), rows, recipe, runtime, streams, learner, torch.Generator(device), labels, neighbors)
    first = 0
    if resume is not None:
        first, run.steps = resume["stage"], resume["steps"]
    for run.stage in range(first, len(recipe.schedule)):
        yield from _run_stage(run, resume if resume is not None and run.stage == first and resume["epoch"] else None)
        if run.ending == "fit":
            return
        run.ending = None


def _check(recipe: Recipe, rows: Rows, *, has_labels: bool, has_neighbors: bool) -> None:
    """Raise a ValueError if the recipe can't be run on these rows."""
    for stage in recipe.schedule:
        recipe.batches.check_scope(stage.affinity.scope)
        if stage.loss.reads_labels and not has_labels:
            raise ValueError(f"the loss {stage.loss} reads labels: pass them, fit(X, y)")
    if recipe.augment is not None:
        recipe.augment.check(rows.shape[1:])
    if has_neighbors and not any(map(_reads_input_graph, recipe.schedule)):
        raise ValueError(f"precomputed_knn was given, but no stage has a graph of the input:\n{recipe.schedule}")


def _check_resume(state: dict[str, Any], recipe: Recipe, seed: int) -> None:
    for name, value in (("seed", seed), ("schedule", str(recipe.schedule))):
        if state[name] != value:
            raise ValueError(f"the state to resume from has another {name}:\n{state[name]}\ninstead of\n{value}")


def _run_stage(run: Run, resume: dict[str, Any] | None) -> Iterator[Event]:
    stage, n = run.current_stage, run.rows.shape[0]
    streams = run.streams.of_stage(run.stage)
    first = 0 if resume is None else resume["epoch"]
    run.epoch, run.resume_at = first, (run.stage, first)
    if first < stage.epochs:
        yield TargetBegan(run)
        if run.ending:
            return
        began = time.perf_counter()
        target = _first_target(run, stage, resume)
        batches = run.recipe.batches.select(target, n)
        steps = stage.epochs * batches.steps(n)
        run.optimizer = run.recipe.optimizer.start(run.encoder.parameters(), steps, lr=stage.lr, captured=run.is_captured)
        if resume is not None:
            run.optimizer.load_state_dict(resume["optimizer"])
        yield StageBegan(run, target, batches, time.perf_counter() - began)

        sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
        for run.epoch in range(first, stage.epochs):
            if stage.refresh and run.epoch > first and run.epoch % stage.refresh == 0:
                yield TargetBegan(run)
                if run.ending:
                    break
                target = make_target(run, stage)
                # What was captured reads the old target.
                sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
            run.generator.manual_seed(streams.seed_of("augment", run.epoch))
            run.rng = streams.isolated("dropout", run.epoch)
            yield from _run_epoch(run, stepper.steps(sample(run.epoch)))
            if run.ending:
                break
    run.resume_at = (run.stage + 1, 0)
    yield StageEnded(run, run.weights())


def _run_epoch(run: Run, results: Generator[StepResult, None, None]) -> Iterator[Event]:
    began, rows, count = time.perf_counter(), 0, 0
    total = torch.zeros((), device=run.runtime.device)
    run.resume_at = None
    with closing(results):
        for step in results:
            run.steps += 1
            total, rows, count = total + step.loss, rows + step.rows, count + 1
            yield StepEnded(run, step.loss, step.rows)
            if run.ending:
                break
    mean = float(total) / count
    if not math.isfinite(mean):
        stage = run.current_stage
        raise DivergedError(
            f"the loss became {mean} in stage {run.stage} ({stage}), epoch {run.epoch + 1} of {stage.epochs}. "
            "Lower learning_rate, or clip the gradients: optimizer=Optimizer(1e-3, clip=1.0)."
        )
    run.resume_at = (run.stage, run.epoch + 1)
    yield EpochEnded(run, mean, rows, time.perf_counter() - began)


def _stepper(run: Run, optimizer: AdamState) -> Stepper:
    captured = run.is_captured

    def learn(batch: Batch, x: Tensor) -> Tensor:
        with nullcontext() if captured or run.rng is None else run.rng():
            loss = compute_gradients(run, batch, x)
            optimizer.update()
        return loss

    rows, device = run.learner.rows, run.runtime.device
    on_device = is_on_device(rows, device)
    if device.type != "cuda" or (on_device and not captured):
        return EagerStepper(learn, rows.take)
    lock = Lock()
    if on_device:
        return CapturedStepper(learn, rows.take, GraphCapture(run.generator, lock))
    learn_step = GraphCapture(run.generator, lock).captured(learn) if captured else learn
    return PrefetchStepper(learn_step, rows.take, device, lock)


def compute_gradients(run: Run, batch: Batch, x: Tensor) -> Tensor:
    """Forward, loss and backward for one batch; the gradients are left in the encoder's parameters."""
    loss = run.current_stage.loss
    x = run.learner.prepare(x, run.generator)
    with run.runtime.autocast(), hidden_outputs(run.learner.trained, loss.reads_hidden) as hidden:
        y = run.learner.trained(x)
    labels = run.labels[batch.ids] if loss.reads_labels and run.labels is not None else None
    value = loss(Step(y.float(), batch.pairs, batch.ids, x, labels, hidden))
    run.encoder.zero_grad(set_to_none=True)
    value.backward()
    return value.detach()


def _first_target(run: Run, stage: Stage, resume: dict[str, Any] | None) -> Target:
    """Compute the target at the start of a stage, or again that of the epoch where the run is resumed."""
    if resume is None or (stage.refresh and resume["epoch"] % stage.refresh == 0):
        return make_target(run, stage)
    run.encoder.load_state_dict(resume["target_weights"])
    target = make_target(run, stage)
    run.encoder.load_state_dict(resume["weights"])
    return target


def make_target(run: Run, stage: Stage) -> Target:
    """Compute what the stage must match, by the current weights."""
    run.target_weights = run.weights()
    if stage.affinity.scope != "graph":
        return InBatch(stage.affinity, run.learner.features(stage.source))
    n, device = run.rows.shape[0], run.runtime.device
    if run.neighbors is not None and _reads_input_graph(stage):
        k = stage.affinity.count_neighbors(n)
        indices, distances = (part[:, :k].to(device) for part in run.neighbors[:2])
        return Graph.of(stage.affinity, Neighbors(indices, distances))
    parts = math.ceil(n / SEARCHED.get(device.type, n))
    if parts == 1:
        return _graph(run, stage, None)
    order = torch.randperm(n, generator=run.streams.of_stage(run.stage).generator("parts of the graph"), device=device)
    ids_of_parts = [part.sort().values for part in order.tensor_split(parts)]
    return Graph.joined([(ids, _graph(run, stage, ids)) for ids in ids_of_parts])


def _reads_input_graph(stage: Stage) -> bool:
    return stage.affinity.scope == "graph" and stage.source in (INPUT, FEATURES)


def _graph(run: Run, stage: Stage, ids: Tensor | None) -> Graph:
    features = run.learner.features(stage.source, ids)
    return Graph.of(stage.affinity, nearest(features, stage.affinity.count_neighbors(len(features))))
