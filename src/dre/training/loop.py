"""The only training loop: a generator of plain events that executes a recipe on rows.

A stage has up to two phases, which are the same loop with another target and loss: the encoder follows coordinates, then the
stage's own loss goes through it, inside each batch or against the bank of all rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from dre.affinity.bank import Bank
from dre.affinity.target import Coordinates, Graph, InBatch, Places, Target
from dre.batches import Batch, Batches
from dre.coordinates.free import START_STD, optimize
from dre.coordinates.start import principal_components
from dre.data.rows import Rows, chunk_length, is_on_device
from dre.encoder import Encoder
from dre.encoder.dense_pass import DensePass
from dre.encoder.forward import INPUT, check_sources, hidden_outputs
from dre.encoder.network import Network
from dre.loss import Loss, Step
from dre.loss.follow import Follow
from dre.neighbors.search import Neighbors, nearest
from dre.optimizer import AdamState
from dre.optimizer.whitening import LinearLayers
from dre.plan.recipe import Recipe
from dre.plan.schedule import Stage
from dre.runtime import IsolatedRNG, RandomStreams, Runtime
from dre.runtime.threads import one_thread
from dre.training.cuda_graphs import GraphCapture
from dre.training.learner import FEATURES, Learner, make_learner
from dre.training.stepper import CapturedStepper, EagerStepper, PrefetchStepper, Stepper, StepResult
from dre.training.trust import sample_trust

Weights = dict[str, Tensor]

# Rows among which an exact search is quick. Beyond, each row has its neighbors in a random part of the rows: as good a sample
# of the data, at a cost that grows with the rows and not with their square.
SEARCHED = {"cuda": 2**20}
RADIUS_NEIGHBORS = 10
TRUST_LOSS = 0.005  # of the trustworthiness: an optional stage that costs more is undone. Two seeds differ by less
LOSS_GAIN = 0.05  # of the first stage's loss: an optional stage on neighborhoods that are hardly easier to draw is undone
PCA_STD = 10.0  # of the first component, where a network follows the components themselves
FOLLOW = Follow()


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
    radius: Tensor | None = None  # of each row's neighborhood, if an augmentation reads it
    target: Target | None = None  # what the steps match at present
    rng: IsolatedRNG | None = None  # an encoder that draws at random does so from it (dropout); new at each epoch
    dense: DensePass | None = None  # in place of the trained part, where it is faster
    weights_to_train: list[nn.Parameter] = field(default_factory=list)
    optimizer: AdamState | None = None
    stage: int = 0
    epoch: int = 0  # within the stage
    steps: int = 0  # in all
    ending: str | None = None  # None, "stage" or "fit"
    target_weights: Weights = field(default_factory=dict)  # from which the current target was computed
    start_weights: Weights = field(default_factory=dict)  # at the start of an optional stage, which may be undone
    losses: dict[int, float] = field(default_factory=dict)  # of the last epoch of each stage so far
    resume_at: tuple[int, int] | None = None  # stage and epoch that come next; None within an epoch

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
        begun = epoch not in (0, self.recipe.schedule[stage].follow) if stage < len(self.recipe.schedule) else False
        return {
            "stage": stage,
            "epoch": epoch,
            "steps": self.steps,
            "seed": self.streams.seed,
            "schedule": str(self.recipe.schedule),
            "weights": self.weights(),
            "target_weights": self.target_weights if epoch else {},
            "start_weights": self.start_weights if epoch else {},
            "losses": dict(self.losses),
            "places": self._places() if begun else None,
            "radius": None if self.radius is None else self.radius.cpu(),
            "optimizer": self.optimizer.state_dict() if begun and self.optimizer is not None else None,
        }

    def _places(self) -> Tensor | None:
        """Return what the target knows about the places of all rows, on the host."""
        if isinstance(self.target, Coordinates):
            return self.target.places.cpu()
        return self.target.columns.T.cpu().contiguous() if isinstance(self.target, Bank) else None


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
    """An optional stage has not improved the map. The weights before it are back, and the fit ends."""

    run: Run
    trust: tuple[float, float]  # trustworthiness before and after it
    loss: tuple[float, float]  # of the first stage and of this one, in their last epochs


Event = TargetBegan | CoordinatesMoved | StageBegan | StepEnded | EpochEnded | StageEnded | StageUndone


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
    TargetBegan, CoordinatesMoved, StageBegan, StepEnded, EpochEnded, StageEnded or StageUndone
    """
    recipe = recipe.clamp_to(rows.shape[0])
    _check(recipe, rows, has_labels=labels is not None, has_neighbors=neighbors is not None)
    sources = [name for stage in recipe.schedule for name in (*stage.sources, *stage.loss.reads_hidden)]
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
    reads_hidden = any(stage.loss.reads_hidden for stage in recipe.schedule)  # which a pass in one piece does not show
    if runtime.precision == "float32" and not reads_hidden and DensePass.applies(learner.trained):
        run.dense = DensePass(learner.trained)  # type: ignore[arg-type]
    run.weights_to_train = list(encoder.parameters()) if run.dense is None else [run.dense.weights]
    first = 0
    if resume is not None:
        first, run.steps = resume["stage"], resume["steps"]
        run.radius = None if resume["radius"] is None else resume["radius"].to(device)
        run.losses = dict(resume["losses"])
    try:
        for run.stage in range(first, len(recipe.schedule)):
            yield from _run_stage(run, resume if resume is not None and run.stage == first and resume["epoch"] else None)
            if run.ending == "fit":
                return
            run.ending = None
    finally:
        if run.dense is not None:
            run.dense.release()


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
    stage = run.current_stage
    first = 0 if resume is None else resume["epoch"]
    run.epoch, run.resume_at = first, (run.stage, first)
    if stage.optional:
        run.start_weights = run.weights() if resume is None else resume["start_weights"]
    if first < stage.all_epochs:
        yield TargetBegan(run)
        if run.ending:
            return
        began = time.perf_counter()
        target = _first_target(run, stage, resume)
        places = None if resume is None or resume["places"] is None else resume["places"].to(run.runtime.device)
        if run.is_following and places is None:
            places = yield from _find_places(run, stage, target)
            if run.ending:
                return
        yield StageBegan(run, target, *_batches_and_steps(run, target), time.perf_counter() - began)
        if run.is_following:
            assert places is not None
            with _threads(run):
                yield from _run_phase(run, Coordinates(places), range(first, stage.follow), resume)
            places = None
        first = max(first, stage.follow)
        if first < stage.all_epochs and not run.ending:
            run.epoch = first
            target = _against(run, stage, target, places)
            with _threads(run):
                yield from _run_phase(run, target, range(first, stage.all_epochs), resume)
    run.resume_at = (run.stage + 1, 0)
    if not stage.optional or run.ending:
        yield StageEnded(run, run.weights())
        return
    weights = run.weights()
    after = _trust(run)
    run.encoder.load_state_dict(run.start_weights)
    trust = (_trust(run), after)
    if trust[1] < trust[0] - TRUST_LOSS or not _is_easier(run):
        run.resume_at = (len(run.recipe.schedule), 0)
        run.end_fit()
        yield StageUndone(run, trust, _losses(run))
        return
    run.encoder.load_state_dict(weights)
    yield StageEnded(run, weights, trust)


def _is_easier(run: Run) -> bool:
    """Whether the network draws these neighborhoods better than those of the first stage, where the two can be compared."""
    first, now = run.recipe.schedule[0], run.current_stage
    if run.stage == 0 or (first.loss, first.against, first.affinity) != (now.loss, now.against, now.affinity):
        return True
    before, after = _losses(run)
    return not after > (1 - LOSS_GAIN) * before  # NaN: there is nothing to compare


def _losses(run: Run) -> tuple[float, float]:
    """Loss of the first stage and of this one, each in its last epoch; NaN for a stage without any."""
    return run.losses.get(0, math.nan), run.losses.get(run.stage, math.nan)


def _trust(run: Run) -> float:
    """Trustworthiness of the present map, by what the network reads."""
    return sample_trust(run.learner.features(run.learner.first_source), run.learner.places())


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
    )
    if resume is not None and resume["optimizer"] is not None and resume["epoch"] == epochs.start:
        run.optimizer.load_state_dict(resume["optimizer"])
    try:
        yield from _run_epochs(run, target, batches, epochs)
    finally:
        if layers is not None:
            layers.remove()


def _run_epochs(run: Run, target: Target, batches: Batches, epochs: range) -> Iterator[Event]:
    stage, n, streams = run.current_stage, run.rows.shape[0], run.streams.of_stage(run.stage)
    assert run.optimizer is not None
    sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
    for run.epoch in epochs:
        if run.epoch > epochs.start and _is_refreshed(stage, run.epoch):
            yield TargetBegan(run)
            if run.ending:
                break
            places = run.target.columns.T if isinstance(run.target, Bank) else None
            run.target = target = _against(run, stage, make_target(run, stage), places)
            # What was captured reads the old target.
            sample, stepper = batches.sampler(target, n, streams), _stepper(run, run.optimizer)
        run.generator.manual_seed(streams.seed_of("augment", run.epoch))
        run.rng = None if isinstance(run.recipe.encoder, Encoder) else streams.isolated("dropout", run.epoch)
        yield from _run_epoch(run, stepper.steps(sample(run.epoch)))
        if run.ending:
            break


def _threads(run: Run) -> AbstractContextManager[None]:
    """A context in which torch computes on one thread, if the pass shares its work among threads itself."""
    return nullcontext() if run.dense is None else one_thread()


def _is_refreshed(stage: Stage, epoch: int) -> bool:
    """Whether the target is computed again at the start of this epoch."""
    return stage.refresh is not None and epoch > stage.follow and (epoch - stage.follow) % stage.refresh == 0


def _against(run: Run, stage: Stage, target: Target, places: Tensor | None) -> Target:
    """Return the target itself, or the bank of all rows, at these places or where the encoder puts the rows."""
    if stage.against != "bank":
        return target
    assert isinstance(target, Graph)  # the stage has checked it
    return Bank(target, run.learner.places() if places is None else places)


def _find_places(run: Run, stage: Stage, target: Target) -> Generator[Event, None, Tensor]:
    """Return the places that the encoder will follow, and set the scale of its output if a map starts with them."""
    if stage.start == "pca":
        std = START_STD if stage.free else PCA_STD
        places = principal_components(run.learner.features(stage.source), run.learner.n_components, std)
    else:
        places = run.learner.places()
    if stage.free:
        assert isinstance(target, Graph)
        bank = Bank(target, places)
        with one_thread():  # apart from the sums over pairs, which share all threads, a step moves but a few numbers
            for step in optimize(bank, stage.loss, stage.free, exaggerate=stage.start == "pca"):
                yield CoordinatesMoved(run, step)
                if run.ending:
                    break
        places = bank.columns.T.contiguous()
    if stage.start == "pca" and isinstance(run.encoder, Network):
        run.encoder.scale.fill_(places.std(0, correction=0).mean().clamp_min(1e-3))
    return places


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
            f"the loss became {mean} in stage {run.stage} ({stage}), epoch {run.epoch + 1} of {stage.all_epochs}. "
            "Lower learning_rate, or clip the gradients: optimizer=Optimizer(1e-3, clip=1.0)."
        )
    run.losses[run.stage] = mean
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
    loss = run.loss
    radius = None if run.radius is None else run.radius[batch.ids]
    x = run.learner.prepare(x, run.generator, radius)
    if run.dense is not None:
        y, hidden = run.dense(x), {}
    else:
        with run.runtime.autocast(), hidden_outputs(run.learner.trained, loss.reads_hidden) as hidden:
            y = run.learner.trained(x)
    labels = run.labels[batch.ids] if loss.reads_labels and run.labels is not None else None
    places = batch.block.at if isinstance(batch.block, Places) else None
    y = y.float()
    value = loss(Step(y, batch.block, batch.ids, x, labels, hidden, places))
    for weight in run.weights_to_train:  # nn.Module.zero_grad would look for them again
        weight.grad = None
    value.backward()
    if isinstance(run.target, Bank):
        run.target.renew(batch.ids, y)
    return value.detach()


def _first_target(run: Run, stage: Stage, resume: dict[str, Any] | None) -> Target:
    """Compute the target at the start of a stage, or again that of the epoch where the run is resumed."""
    if resume is None or _is_refreshed(stage, resume["epoch"]):
        return make_target(run, stage)
    run.encoder.load_state_dict(resume["target_weights"])
    target = make_target(run, stage)
    run.encoder.load_state_dict(resume["weights"])
    return target


def make_target(run: Run, stage: Stage) -> Target:
    """Compute what the stage must match, by the current weights; the radius of the rows, if it is needed, on the way."""
    target = _make_target(run, stage)
    if run.learner.reads_radius and run.radius is None:
        run.radius = _radius(run, stage, target)
    return target


def _make_target(run: Run, stage: Stage) -> Target:
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


def _radius(run: Run, stage: Stage, target: Target) -> Tensor:
    """Distance of each row to its tenth neighbor, or to the last where there are fewer, among what the trained part reads."""
    features = run.learner.features(run.learner.first_source)
    if isinstance(target, Graph) and stage.source in (INPUT, FEATURES) and target.search.parts == 1:
        indices = target.indices  # nearest first
    else:
        indices = nearest(features, min(RADIUS_NEIGHBORS, len(features) - 1)).indices
    tenth = indices[:, min(RADIUS_NEIGHBORS, indices.shape[1]) - 1]
    step = chunk_length(features.shape[1:])
    return torch.cat([(x - features[ids]).norm(dim=1) for x, ids in zip(features.split(step), tenth.split(step), strict=True)])
