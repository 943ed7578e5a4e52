"""The only training loop: a generator of plain events that executes a recipe on rows.

A stage has up to two phases, which are the same loop with another target and loss: the encoder follows coordinates, then the
stage's own loss goes through it, inside each batch or against the bank of all rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from dre.affinity.bank import Bank
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import BatchCoordinates, Coordinates, Pairs, Target
from dre.batches import Batch, Batches, Neighborhoods
from dre.data.rows import Rows, is_on_device
from dre.encoder import Encoder
from dre.encoder.backbone import Backbone
from dre.encoder.dense_pass import DensePass
from dre.encoder.forward import check_sources, hidden_outputs, products_of_row
from dre.loss import Step, terms_of
from dre.neighbors.search import Neighbors
from dre.optimizer import AdamState
from dre.optimizer.whitening import LinearLayers
from dre.plan.recipe import Recipe
from dre.runtime import RandomStreams, Runtime, is_opaque
from dre.runtime.ranks import ALONE, Ranks
from dre.runtime.threads import all_threads, one_thread_on
from dre.training.cuda_graphs import GraphCapture
from dre.training.events import EpochEnded, Event, StageBegan, StageEnded, StepEnded, TargetBegan
from dre.training.learner import make_learner
from dre.training.optional import judge, loss_for_next_stage, skip
from dre.training.run import EpochProgress, Origin, Run
from dre.training.stepper import CapturedStepper, EagerStepper, PrefetchStepper, ReadAheadStepper, Stepper, StepResult
from dre.training.targets import find_coordinates, first_target, is_refreshed, make_target, reads_input_graph, target_of_loss

LARGE_STEP = 10**9  # products in the forward pass of a step, from which several threads of torch pay


class DivergedError(RuntimeError):
    """The loss became NaN or infinite."""


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
    landmarks: Landmarks | None = None,
    anchors: Tensor | None = None,
    resume: dict[str, Any] | None = None,
    ranks: Ranks = ALONE,
    order: Tensor | None = None,
    origin: Origin | None = None,
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
    landmarks : Landmarks, optional
        Distances to landmarks under another metric, in place of Euclidean ones.
    anchors : Tensor of shape (n, n_components), optional
        Coordinates of the rows that must stay in the map where they are, NaN for the others. Free coordinates are then
        those of the others alone, and the encoder follows both.
    resume : dict, optional
        What ``Run.state_dict()`` returned. The run continues there and ends, on a CPU, in the same bits as one that was not
        interrupted.
    ranks : Ranks, optional
        The processes that train the same weights, each on its own rows, as many as the others have. Batches of the recipe are
        those of all ranks together.
    order : Tensor of shape (rows of all ranks,), optional
        Position of these rows among all, as states to resume from have them.
    origin : Origin, optional
        The rows before they were scaled, for observers.

    Yields
    ------
    TargetBegan, CoordinatesMoved, StageBegan, StepEnded, EpochEnded, StageEnded, StageUndone or StageSkipped
    """
    recipe = recipe.clamp_to(rows.shape[0], ranks.size)
    recipe = replace(recipe, batches=recipe.batches.split(ranks.size))
    _check(recipe, rows, has_labels=labels is not None, has_neighbors=neighbors is not None)
    if resume is not None:
        _check_resume(resume, recipe, seed)
    with one_thread_on(runtime.device):
        sources = [name for stage in recipe.schedule for name in (*stage.sources, *stage.loss.reads_hidden)]
        check_sources(encoder, list(dict.fromkeys(sources)), rows, n_components)
        if resume is not None:
            encoder.load_state_dict(resume["weights"])
        ranks.copy_first([*encoder.parameters(), *encoder.buffers()])
        streams = RandomStreams(seed, runtime.device, rank=ranks.rank)
        mean = torch.zeros(rows.shape[1:], device=runtime.device) if mean is None else mean.to(runtime.device)
        unfreeze = _begins_unfrozen(recipe, resume)
        learner = make_learner(encoder, rows, recipe.augment, mean, streams.generator("front"), ranks=ranks, unfreeze=unfreeze)
        streams = replace(streams, window=learner.window)
        run = Run(
            encoder.train(), rows, recipe, runtime, streams, learner, torch.Generator(runtime.device), ranks, order, origin
        )
        run.is_unfrozen = unfreeze
        run.labels, run.neighbors = None if labels is None else labels.to(runtime.device), neighbors
        run.anchors = None if anchors is None else anchors.to(runtime.device)
        run.landmarks = None if landmarks is None else Landmarks(*(part.to(runtime.device) for part in landmarks))
        yield from _run_stages(run, resume)


def _run_stages(run: Run, resume: dict[str, Any] | None) -> Iterator[Event]:
    _choose_weights(run)
    first = 0
    if resume is not None:
        first, run.steps = resume["stage"], resume["steps"]
        if resume["radius"] is not None and not run.ranks.is_connected:  # else it is found again: ranks number rows otherwise
            run.radius = resume["radius"].to(run.runtime.device)
        run.map_loss = resume["map_loss"]
    stages = range(first, len(run.recipe.schedule))
    try:
        for run.stage in stages:
            _freeze_or_unfreeze(run)
            yield from _run_stage(run, resume if resume is not None and run.stage == first and resume["begun"] else None)
            if run.ends() and run.ending == "fit":
                return
            run.ending = None
    finally:
        if run.dense is not None:
            run.dense.release()


def _begins_unfrozen(recipe: Recipe, resume: dict[str, Any] | None) -> bool:
    first = 0 if resume is None else resume["stage"]
    return first < len(recipe.schedule) and recipe.schedule[first].unfreeze


def _freeze_or_unfreeze(run: Run) -> None:
    """Split the encoder anew if the stage trains its backbone and the one before did not, or the other way round."""
    unfreeze = run.current_stage.unfreeze
    if unfreeze == run.is_unfrozen:
        return
    if run.dense is not None:
        run.dense.release()
        run.dense = None
    learner, generator = run.learner, run.streams.generator("front")
    run.learner = make_learner(
        run.encoder, learner.input_rows, run.recipe.augment, learner.mean, generator, ranks=run.ranks, unfreeze=unfreeze
    )
    run.streams, run.is_unfrozen = replace(run.streams, window=run.learner.window), unfreeze
    _choose_weights(run)


def _choose_weights(run: Run) -> None:
    """Choose what the optimizer moves, and how a step computes it."""
    trained, precision = run.learner.trained, run.runtime.precision
    reads_hidden = any(stage.loss.reads_hidden for stage in run.recipe.schedule)  # which a pass in one piece does not show
    if not reads_hidden and not run.is_unfrozen and DensePass.applies(trained, precision):
        run.dense = DensePass(trained, precision)  # type: ignore[arg-type]
    run.weights_to_train = list(run.encoder.parameters()) if run.dense is None else [run.dense.weights]
    if run.dense is None and run.runtime.device.type == "cpu":  # by size, not by load: several threads have other bits
        is_cached = run.learner.front is None
        steps_through, rows = (trained, run.learner.rows) if is_cached else (run.encoder, run.rows)
        run.has_large_steps = products_of_row(steps_through, rows) * run.recipe.batches.rows >= LARGE_STEP


def _check(recipe: Recipe, rows: Rows, *, has_labels: bool, has_neighbors: bool) -> None:
    """Raise a ValueError if the recipe can't be run on these rows."""
    for stage in recipe.schedule:
        recipe.batches.check_scope(stage.affinity.scope)
        if stage.loss.reads_labels and not has_labels:
            raise ValueError(f"the loss {stage.loss} reads labels: pass them, fit(X, y)")
        if stage.against == "ranks" and (stage.loss.reads_labels or stage.loss.reads_hidden):
            raise ValueError(f"the loss {stage.loss} reads more than pairs, of its own rank alone: use 'against batch'")
        if stage.against == "ranks" and isinstance(recipe.batches, Neighborhoods):
            raise ValueError(f"{recipe.batches} have other sizes on other ranks: use shuffled or edges, or 'against batch'")
    if recipe.augment is not None:
        recipe.augment.check(rows.shape[1:])
    if has_neighbors and not any(map(reads_input_graph, recipe.schedule)):
        raise ValueError(f"precomputed_knn was given, but no stage has a graph of the input:\n{recipe.schedule}")


def _check_resume(state: dict[str, Any], recipe: Recipe, seed: int) -> None:
    for name, value in (("seed", seed), ("schedule", str(recipe.schedule))):
        if state[name] != value:
            raise ValueError(f"the state to resume from has another {name}:\n{state[name]}\ninstead of\n{value}")


def _run_stage(run: Run, resume: dict[str, Any] | None) -> Iterator[Event]:
    stage = run.current_stage
    first = 0 if resume is None else resume["epoch"]
    run.epoch, run.resume_at, run.target, run.resumed = first, (run.stage, first), None, resume
    if stage.optional:
        run.start_weights = run.weights() if resume is None else resume["start_weights"]
    if first < stage.all_epochs:
        yield TargetBegan(run)
        if run.ends():
            return
        began = time.perf_counter()
        target = first_target(run, stage, resume)
        if stage.optional and resume is None and (skipped := skip(run, target)) is not None:
            yield skipped
            return
        ready, free_seconds = time.perf_counter(), 0.0
        coordinates = None if resume is None else run.resume_coordinates(resume["coordinates"])
        if run.is_following and coordinates is None:
            coordinates = yield from find_coordinates(run, stage, target)
            if run.ends():
                return
            free_seconds = time.perf_counter() - ready
        batches, steps = _batches_and_steps(run, target)
        done = 0 if resume is None or resume["progress"] is None else resume["progress"]["steps"]
        following = None
        if run.is_following:
            assert coordinates is not None
            run.target = following = Coordinates(coordinates, run.first_row)
            coordinates = None
        yield StageBegan(run, target, batches, steps - done, ready - began, free_seconds)
        run.ends()  # ranks agree here: below, all of them go the same way
        if following is not None:
            with _threads(run):
                yield from _run_phase(run, following, range(first, stage.follow), resume)
        first = max(first, stage.follow)
        if first < stage.all_epochs and not run.ending:
            run.epoch = first
            target = target_of_loss(run, stage, target, coordinates)
            with _threads(run):
                yield from _run_phase(run, target, range(first, stage.all_epochs), resume)
    elif resume is not None and stage.all_epochs:  # after its last epoch: the next stage asks for its target
        run.target = first_target(run, stage, resume)
    run.resume_at, run.resumed = (run.stage + 1, 0), None
    ended = judge(run) if stage.optional and not run.ending else StageEnded(run, run.weights())
    run.map_loss = loss_for_next_stage(run) if isinstance(ended, StageEnded) else None
    yield ended


def _batches_and_steps(run: Run, target: Target) -> tuple[Batches, int]:
    """Return the batches of the phase that comes next, and the number of steps in all epochs that are left."""
    stage, n, plan = run.current_stage, run.rows.shape[0], run.recipe.batches
    among_all = plan.select(Coordinates(torch.empty(0)), n)  # where a row need not meet its neighbors
    of_loss = among_all if stage.against == "bank" else plan.select(target, n)
    following = max(0, stage.follow - run.epoch)
    matching = stage.all_epochs - max(run.epoch, stage.follow)
    return among_all if following else of_loss, following * among_all.steps(n) + matching * of_loss.steps(n)


def _run_phase(run: Run, target: Target, epochs: range, resume: dict[str, Any] | None) -> Iterator[Event]:
    """Train for some epochs of a stage on one target, with an optimizer of its own."""
    stage, n = run.current_stage, run.rows.shape[0]
    run.target = target
    batches = run.recipe.batches.select(target, n)
    whole = stage.follow if run.is_following else stage.epochs
    steps = whole * batches.steps(n)
    layers = LinearLayers(run.learner.trained) if run.dense is None and run.recipe.optimizer.whiten else None
    run.optimizer = run.recipe.optimizer.start(
        run.weights_to_train,
        steps,
        lr=stage.lr,
        captured=run.is_captured,
        layers=layers if run.dense is None else run.dense.layers,
        average=run.ranks.average if run.ranks.is_connected else None,
    )
    resume = resume if resume is not None and resume["epoch"] == epochs.start else None
    if resume is not None and resume["optimizer"] is not None:
        run.optimizer.load_state_dict(resume["optimizer"])
    try:
        yield from _run_epochs(run, target, batches, epochs, None if resume is None else resume["progress"])
    finally:
        if layers is not None:
            layers.remove()


def _run_epochs(run: Run, target: Target, batches: Batches, epochs: range, resume: dict[str, Any] | None) -> Iterator[Event]:
    """Train for some epochs; ``resume`` is where the first of them goes on."""
    stage, n, streams = run.current_stage, run.rows.shape[0], run.streams.of_stage(run.stage)
    assert run.optimizer is not None
    sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
    own, captured = _own_parts(run), run.is_captured
    exchange = any(map(is_opaque, own))
    for run.epoch in epochs:
        if run.epoch > epochs.start and is_refreshed(stage, run.epoch):
            yield TargetBegan(run)
            if run.ends():
                break
            coordinates = run.target.columns.T if isinstance(run.target, Bank) else None
            run.target = target = target_of_loss(run, stage, make_target(run, stage), coordinates)
            # What was captured reads the old target.
            sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
        run.generator.manual_seed(streams.seed_of("augment", run.epoch))
        run.rng = streams.isolated("dropout", run.epoch, exchange=exchange) if own and not captured else None
        if resume is None:
            progress = EpochProgress(torch.zeros((), device=run.runtime.device))
        else:
            progress, resume = run.resume_epoch(resume), None
        yield from _run_epoch(run, stepper.steps(islice(sample(run.epoch), progress.steps, None)), progress)
        if run.ends():
            break


def _threads(run: Run) -> AbstractContextManager[None]:
    """All threads of torch for large steps on a CPU, which do not wait for each other too often."""
    return all_threads() if run.has_large_steps else nullcontext()


def _run_epoch(run: Run, results: Generator[StepResult, None, None], progress: EpochProgress) -> Iterator[Event]:
    run.progress, run.resumed = progress, None
    with closing(results):
        for step in results:
            run.steps += 1
            progress.add(step.loss, step.rows)
            yield StepEnded(run, step.loss, step.rows)
            if run.ends(progress.steps):
                break
    run.average_buffers()
    mean = run.ranks.mean(float(progress.loss) / progress.steps)
    if not math.isfinite(mean):
        stage = run.current_stage
        raise DivergedError(
            f"the loss became {mean} in stage {run.stage} ({stage}), epoch {run.epoch + 1} of {stage.all_epochs}. "
            "Lower learning_rate, or clip the gradients: optimizer=Optimizer(1e-3, clip=1.0)."
        )
    run.progress, run.resume_at = None, (run.stage, run.epoch + 1)
    yield EpochEnded(run, mean, progress.rows * run.ranks.size, progress.seconds)


def _own_parts(run: Run) -> list[object]:
    """Return the encoder and the losses that are not of this package, and so may draw at random."""
    plan = run.recipe.encoder
    is_built_in = isinstance(plan, Encoder) and not _is_own(plan) and not _is_own(run.encoder)
    backbone = [plan.module] if isinstance(plan, Backbone) and run.learner.front is not None else []
    return [*([] if is_built_in else [run.encoder]), *filter(_is_own, backbone), *filter(_is_own, terms_of(run.loss))]


def _is_own(part: object) -> bool:
    return not type(part).__module__.startswith("dre.")


def _stepper(run: Run, optimizer: AdamState) -> Stepper:
    captured = run.is_captured

    def learn(batch: Batch, x: Tensor) -> Tensor:
        loss = compute_gradients(run, batch, x)
        optimizer.update()
        return loss

    rows, device = run.learner.rows, run.runtime.device
    on_device = is_on_device(rows, device)
    if device.type == "cpu" and not on_device:
        return ReadAheadStepper(learn, rows)
    if device.type != "cuda" or (on_device and not captured):
        return EagerStepper(learn, rows.take)
    lock = Lock()
    if on_device:
        return CapturedStepper(learn, rows.take, GraphCapture(run.generator, lock))
    learn_step = GraphCapture(run.generator, lock).captured(learn) if captured else learn
    return PrefetchStepper(learn_step, rows.take, device, lock)


def compute_gradients(run: Run, batch: Batch, x: Tensor) -> Tensor:
    """Forward, loss and backward for one batch; the gradients are left in the weights that are trained."""
    loss = run.loss
    isolated = nullcontext if run.rng is None else run.rng  # only around what may draw: it slows each call of torch
    radius = None if run.radius is None else run.radius[batch.ids]
    with isolated():
        x = run.learner.prepare(x, run.generator, radius)
        if run.dense is not None:
            y, hidden = run.dense(x), {}
        else:
            with run.runtime.autocast(), hidden_outputs(run.learner.trained, loss.reads_hidden) as hidden:
                y = run.learner.trained(x)
    labels = run.labels[batch.ids] if loss.reads_labels and run.labels is not None else None
    coordinates = batch.block.at if isinstance(batch.block, BatchCoordinates) else None
    y = y.float()
    step = Step(y, batch.block, batch.ids, x, labels, hidden, coordinates)
    if run.against == "ranks":
        step = _of_all_ranks(run.ranks, step)
    with isolated() if any(map(_is_own, terms_of(loss))) else nullcontext():
        value = loss(step)
    for weight in run.weights_to_train:  # nn.Module.zero_grad would look for them again
        weight.grad = None
    with isolated():
        value.backward()
    if isinstance(run.target, Bank):
        run.target.renew(batch.ids, y)
    return value.detach()


def _of_all_ranks(ranks: Ranks, step: Step) -> Step:
    """The step with the rows of all ranks, which then repel each other; each rank has pairs among its own alone."""
    near = None if step.pairs.near is None else ranks.gather(step.pairs.near)
    pairs = Pairs.joined(near, ranks.gather(step.pairs.weight), ranks.size)
    return Step.of(ranks.gather_with_gradient(step.y), pairs)
