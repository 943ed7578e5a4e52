"""The only loop: a generator of plain events that carries out a recipe on rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dre.batches import Batches, Draw
from dre.encoder import Encoder
from dre.forward import check_sources
from dre.learner import Learner, learner
from dre.neighbors import nearest
from dre.optimiser import Descent
from dre.recipe import Recipe
from dre.rows import Rows, is_held
from dre.runtime import PrivateRandom, Runtime
from dre.schedule import Stage
from dre.step import Plain, Recorded, Step
from dre.target import Graph, InBatch, Pairs, Target

Weights = dict[str, Tensor]


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
    random: PrivateRandom  # what the encoder itself draws from (dropout)
    learner: Learner  # what of the encoder is trained
    optimiser: torch.optim.Optimizer | None = None
    stage: int = 0  # position: stage, epoch in the stage, steps in all
    epoch: int = 0
    steps: int = 0
    ending: str | None = None  # None, "stage" or "fit"

    def end_stage(self) -> None:
        self.ending = self.ending or "stage"

    def end_fit(self) -> None:
        self.ending = "fit"

    @property
    def is_recorded(self) -> bool:
        """Whether steps are recorded on a GPU: those of our own networks and augmentations, of which all is known."""
        own = isinstance(self.recipe.encoder, Encoder) and (self.recipe.augment is None or self.recipe.augment.has_text)
        return self.runtime.records and own

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
    recipe = recipe.fitted_to(rows.shape[0])
    for stage in recipe.schedule:  # what can't be done is said before anything is trained
        recipe.batches.check_scope(stage.affinity.over)
    if recipe.augment is not None:
        recipe.augment.check(rows.shape[1:])
    check_sources(encoder, [stage.source for stage in recipe.schedule], rows, n_components)
    random = PrivateRandom(seed, runtime.device)
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
    batches = run.recipe.batches.chosen_for(target, n)
    yield StageBegan(run, target, batches, time.perf_counter() - began)

    steps = stage.epochs * batches.steps(n)
    rate = stage.lr or run.recipe.optimiser.lr
    descent = run.recipe.optimiser.start(run.encoder.parameters(), rate, steps, recorded=run.is_recorded)
    run.optimiser = descent.adam
    step = _step(run, descent)
    epochs = batches.epochs(target, n, run.generator, run.seed)
    for run.epoch in range(stage.epochs):
        if stage.refresh and run.epoch and run.epoch % stage.refresh == 0:
            yield TargetBegan(run)
            if run.ending:
                break
            target = make_target(run, stage)
            epochs = batches.epochs(target, n, run.generator, run.seed)
        yield from _one_epoch(run, next(epochs), step)
        if run.ending:
            break
    yield StageEnded(run, run.weights())


def _one_epoch(run: Run, draws: Iterable[Draw], step: Step) -> Iterator[Event]:
    began, rows, count = time.perf_counter(), 0, 0
    total = torch.zeros((), device=run.runtime.device)
    for draw in draws:
        with nullcontext() if run.is_recorded else run.random():
            loss = step(draw)
        run.steps += 1
        total, rows, count = total + loss, rows + draw.rows, count + 1
        yield Tick(run, loss, draw.rows)
        if run.ending:
            break
    mean = float(total) / count
    if not math.isfinite(mean):
        raise DivergedError(
            f"the loss became {mean} in stage {run.stage} ({run.plan}), epoch {run.epoch + 1} of {run.plan.epochs}. "
            "Lower the learning rate, or limit the gradients: training=(None, Optimiser(1e-3, clip=1.0))."
        )
    yield EpochEnded(run, mean, rows, time.perf_counter() - began)


def _step(run: Run, descent: Descent) -> Step:
    def learn(x: Tensor, pairs: Pairs) -> Tensor:
        loss = gradients(run, x, pairs)
        descent.update()
        return loss

    take = run.learner.rows.take
    if not run.is_recorded:
        return Plain(learn, take)
    return Recorded(learn, take, run.generator, from_start=is_held(run.learner.rows, run.runtime.device))


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
    features = run.learner.features(stage.source)
    if stage.affinity.over == "graph":
        return Graph(stage.affinity, nearest(features, stage.affinity.neighbors(len(features))))
    return InBatch(stage.affinity, features)
