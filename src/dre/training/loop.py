"""The only loop: a generator of plain events that carries out a recipe on rows."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor, nn

from dre.affinity.target import Graph, InBatch, Pairs, Target
from dre.augment import CallableAugment, Chain
from dre.batches import Batches
from dre.data.rows import Rows, is_on_device
from dre.encoder.forward import check_sources
from dre.loss import Sum
from dre.neighbors.search import nearest
from dre.optimizer import AdamState
from dre.plan.recipe import Recipe
from dre.plan.schedule import Stage
from dre.runtime import IsolatedRNG, Runtime
from dre.training.cuda_graphs import GraphCapture
from dre.training.learner import Learner, learner
from dre.training.stepper import CapturedStepper, EagerStepper, PrefetchStepper, Stepper, StepResult

Weights = dict[str, Tensor]

# Rows among which an exact search is quick. Where there are more, each row has its neighbours in a random part of them: as
# good a sample of the data, at a cost that grows with the rows and not with their square.
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
    seed: int
    generator: torch.Generator  # what batches and augmentation draw from
    random: IsolatedRNG  # what the encoder itself draws from (dropout)
    learner: Learner  # what of the encoder is trained
    descent: AdamState | None = None  # that makes the steps of the stage
    stage: int = 0  # position: stage, epoch in the stage, steps in all
    epoch: int = 0
    steps: int = 0
    ending: str | None = None  # None, "stage" or "fit"

    def end_stage(self) -> None:
        self.ending = self.ending or "stage"

    def end_fit(self) -> None:
        self.ending = "fit"

    @property
    def is_captured(self) -> bool:
        """Whether steps are recorded on a GPU: those that are made of our own parts alone, of which all is known."""
        recipe = self.recipe
        parts = (recipe.encoder, recipe.augment, recipe.batches, self.plan.loss, self.plan.affinity)
        return self.runtime.records and all(map(is_capturable, parts))

    @property
    def plan(self) -> Stage:
        return self.recipe.schedule[self.stage]

    def weights(self) -> Weights:
        """A copy of the encoder's weights, on the host."""
        return {name: value.detach().cpu().clone() for name, value in self.encoder.state_dict().items()}


@dataclass(frozen=True)
class TargetBegan:
    """The neighbours of a source are about to be sought, which can take a while."""

    run: Run


@dataclass(frozen=True)
class StageBegan:
    """The target is there, and the first step comes next."""

    run: Run
    target: Target
    batches: Batches  # the way of drawing that was chosen
    seconds: float  # that the target took


@dataclass(frozen=True)
class Tick:
    """One step is done. The loss stays on the device: reading it makes the host wait."""

    run: Run
    loss: Tensor
    rows: int


@dataclass(frozen=True)
class EpochEnded:
    run: Run
    loss: float
    rows: int
    seconds: float


@dataclass(frozen=True)
class StageEnded:
    run: Run
    weights: Weights


Event = TargetBegan | StageBegan | Tick | EpochEnded | StageEnded


def train(
    encoder: nn.Module,
    rows: Rows,
    recipe: Recipe,
    *,
    n_components: int,
    runtime: Runtime,
    seed: int,
    mean: Tensor | None = None,
) -> Iterator[Event]:
    """Carry out the recipe's schedule on the encoder, in place, and yield what happens.

    ``mean`` is what the rows had before they were centred, at their scale: augmentations of images need it. The caller may stop
    asking for events at any moment: the encoder then has the weights of that moment.
    """
    recipe = recipe.clamp_to(rows.shape[0])
    for stage in recipe.schedule:  # what can't be done is said before anything is trained
        recipe.batches.check_scope(stage.affinity.scope)
    if recipe.augment is not None:
        recipe.augment.check(rows.shape[1:])
    check_sources(encoder, [stage.source for stage in recipe.schedule], rows, n_components)
    random = IsolatedRNG(seed, runtime.device)
    mean = torch.zeros(rows.shape[1:], device=runtime.device) if mean is None else mean.to(runtime.device)
    learns = learner(encoder, rows, recipe.augment, mean, runtime.generator(seed))
    run = Run(encoder.train(), rows, recipe, runtime, seed, runtime.generator(seed), random, learns)
    for run.stage, _ in enumerate(recipe.schedule):
        yield from _one_stage(run)
        if run.ending == "fit":
            return
        run.ending = None


def _one_stage(run: Run) -> Iterator[Event]:
    stage, n = run.plan, run.rows.shape[0]
    run.epoch = 0
    yield TargetBegan(run)
    if run.ending:
        return
    began = time.perf_counter()
    target = make_target(run, stage)
    batches = run.recipe.batches.select(target, n)
    yield StageBegan(run, target, batches, time.perf_counter() - began)

    steps = stage.epochs * batches.steps(n)
    rate = stage.lr or run.recipe.optimizer.lr
    descent = run.recipe.optimizer.start(run.encoder.parameters(), rate, steps, captured=run.is_captured)
    run.descent = descent
    learning = _steps(run, descent)
    epochs = batches.epochs(target, n, run.generator, run.seed)
    for run.epoch in range(stage.epochs):
        if stage.refresh and run.epoch and run.epoch % stage.refresh == 0:
            yield TargetBegan(run)
            if run.ending:
                break
            target = make_target(run, stage)
            epochs = batches.epochs(target, n, run.generator, run.seed)
            learning = _steps(run, descent)  # what was recorded is of the old target
        yield from _one_epoch(run, learning.steps(next(epochs)))
        if run.ending:
            break
    yield StageEnded(run, run.weights())


def _one_epoch(run: Run, made: Generator[StepResult, None, None]) -> Iterator[Event]:
    began, rows, count = time.perf_counter(), 0, 0
    total = torch.zeros((), device=run.runtime.device)
    with closing(made):
        for step in made:
            run.steps += 1
            total, rows, count = total + step.loss, rows + step.rows, count + 1
            yield Tick(run, step.loss, step.rows)
            if run.ending:
                break
    mean = float(total) / count
    if not math.isfinite(mean):
        raise DivergedError(
            f"the loss became {mean} in stage {run.stage} ({run.plan}), epoch {run.epoch + 1} of {run.plan.epochs}. "
            "Lower the learning rate, or limit the gradients: training=(None, Optimizer(1e-3, clip=1.0))."
        )
    yield EpochEnded(run, mean, rows, time.perf_counter() - began)


def _steps(run: Run, descent: AdamState) -> Stepper:
    def learn(x: Tensor, pairs: Pairs) -> Tensor:
        with nullcontext() if run.is_captured else run.random():
            loss = gradients(run, x, pairs)
            descent.update()
        return loss

    rows, device = run.learner.rows, run.runtime.device
    held = is_on_device(rows, device)
    if device.type != "cuda" or (held and not run.is_captured):
        return EagerStepper(learn, rows.take)
    quiet = Lock()
    if held:
        return CapturedStepper(learn, rows.take, GraphCapture(run.generator, quiet))
    learning = GraphCapture(run.generator, quiet).learning(learn) if run.is_captured else learn
    return PrefetchStepper(learning, rows.take, device, quiet)


def is_capturable(part: object) -> bool:
    """Whether all of a plan is of this package, and not of a user's own."""
    if isinstance(part, Sum):
        return all(is_capturable(term) for _, term in part.terms)
    if isinstance(part, Chain):
        return all(map(is_capturable, part.links))
    return part is None or (type(part).__module__.startswith("dre.") and not isinstance(part, (CallableAugment, nn.Module)))


def gradients(run: Run, x: Tensor, pairs: Pairs) -> Tensor:
    """Forward, loss and backward for the rows of one batch; the gradients are left in the encoder's parameters."""
    x = run.learner.seen(x, run.generator)
    with run.runtime.autocast():
        y = run.learner.trained(x)
    loss = run.plan.loss(y.float(), pairs)
    run.encoder.zero_grad(set_to_none=True)
    loss.backward()
    return loss.detach()


def make_target(run: Run, stage: Stage) -> Target:
    """What the stage must match, from the network as it stands."""
    if stage.affinity.scope != "graph":
        return InBatch(stage.affinity, run.learner.features(stage.source))
    n, device = run.rows.shape[0], run.runtime.device
    parts = math.ceil(n / SEARCHED.get(device.type, n))
    if parts == 1:
        return _graph(run, stage, None)
    order = torch.randperm(n, generator=run.runtime.generator(run.seed), device=device)
    return Graph.joined([(ids, _graph(run, stage, ids)) for ids in (part.sort().values for part in order.tensor_split(parts))])


def _graph(run: Run, stage: Stage, ids: Tensor | None) -> Graph:
    features = run.learner.features(stage.source, ids)
    return Graph.of(stage.affinity, nearest(features, stage.affinity.neighbors(len(features))))
