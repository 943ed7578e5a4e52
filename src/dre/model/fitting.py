"""Fits a map to rows that were checked: builds the network, trains it, and writes and reads checkpoints on the way."""

from __future__ import annotations

import copy
import importlib.metadata
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

import dre
from dre.affinity.landmarks import Landmarks
from dre.data.fingerprint import HASH, fingerprint
from dre.data.metric import RowMetric
from dre.data.preparation import Preparation
from dre.data.scaling import Scaling
from dre.data.validation import check_seed
from dre.encoder import Encoder
from dre.encoder.backbone import Backbone
from dre.encoder.backbone_front import BackboneFeatures
from dre.model.checkpoint import Checkpoint, CheckpointError, CheckpointFolder
from dre.model.digest import digest
from dre.model.fitted import Array, FittedMap, check_map, embed, to_model_rows
from dre.neighbors.search import Neighbors
from dre.observe import Observer, watch
from dre.observe.account import Account
from dre.observe.checkpoints import Checkpoints
from dre.observe.history import History
from dre.observe.stopping import Interrupt
from dre.plan.recipe import Recipe
from dre.progress.activity import activity
from dre.progress.display import is_shown, say
from dre.runtime import IsolatedRNG, RandomStreams, Runtime
from dre.runtime.gpu_memory import memory_advice
from dre.runtime.ranks import ALONE, Ranks
from dre.training.learner import uses_cached_front
from dre.training.loop import train
from dre.training.run import EUCLIDEAN, NOT_PASSED, Origin, Run

COMPUTE = ("torch", "numpy", "scipy", "scikit-learn", "numba", "faiss-cpu")  # libraries whose version may change a bit
TRAINING_ADVICE = "Lower batch_size or perplexity, close other programs that use it, or pass device='cpu'."
SAME_SCALING = 1e-9  # of the scale: CPUs add the values of a column in another order


class Share(NamedTuple):
    """The rows of one rank among those of all."""

    ranks: Ranks
    is_own: bool = False  # whether the rank was given its own rows, and not those of all
    order: Tensor | None = None  # position in the data of the rows of all ranks; None: those of the first rank come first
    repeats: Array | None = None  # id of each row in the data, if weights repeat rows
    n: int | None = None  # rows in the data, if weights repeat rows

    def ids_of(self, sample: Array | None) -> Array | None:
        """Ids in the data of the user of a sample of the rows, or of all; None if they are 0, 1, 2, …"""
        if self.repeats is None:
            return sample
        return self.repeats if sample is None else self.repeats[sample]


ONE_PROCESS = Share(ALONE)


class Data(NamedTuple):
    """All rows and labels, of which a fit may have a sample, or a rank its share."""

    rows: Any
    labels: Tensor | None = None
    sample: int | None = None


@dataclass(frozen=True)
class MapFit:
    """Everything that a fit depends on."""

    X: Any
    scaling: Scaling
    recipe: Recipe
    n_components: int
    runtime: Runtime
    seed: int
    random_state: Any = None  # of the user, from which the seed comes
    labels: Tensor | None = None
    neighbors: Neighbors | None = None
    landmarks: Landmarks | None = None
    metric: RowMetric = EUCLIDEAN
    ids: Array | None = None  # of the rows in X of the user; None: all of them
    data: Data | None = None  # of which X is a part
    share: Share = ONE_PROCESS
    preparation: Preparation | None = None  # which made the rows
    encoder: nn.Module | None = None  # trained before, to go on with; None: a new one
    anchors: Tensor | None = None  # coordinates that rows keep; NaN for those that have none yet

    @property
    def n_passed(self) -> int:
        """Number of rows in the data of the user."""
        if self.share.n is not None:
            return self.share.n
        if self.data is not None:
            return int(self.data.rows.shape[0])
        return int(self.X.shape[0] if self.ids is None else (self.ids != NOT_PASSED).sum())

    @cached_property
    def identity(self) -> dict[str, str]:
        """What has to be the same when the fit is resumed, by name."""
        data = self.data or Data(self.X, self.labels)
        knn = None if self.neighbors is None else torch.cat([part.double() for part in self.neighbors[:2]], 1).numpy()
        return {
            "rows": f"{tuple(data.rows.shape)} of each rank" if self.share.is_own else fingerprint(data.rows),
            "labels": "none" if data.labels is None else fingerprint(data.labels.numpy()[:, None], sampled=False),
            "sample": str(data.sample),
            "precomputed_knn": "none" if knn is None else fingerprint(knn, sampled=False),
            "metric": str(self.metric),
            "standardize": str(self.scaling.column_mean is not None),
            "n_components": str(self.n_components),
            "recipe": str(self.recipe),
            **self._pretrained(),
            "seed": str(self.random_state if isinstance(self.random_state, int | np.integer | None) else self.seed),
            "device": str(self.runtime),
            "versions": "\n".join(f"{name} {version}" for name, version in compute_versions().items()),
        }

    def _pretrained(self) -> dict[str, str]:
        """The weights that a backbone begins with, of which the recipe has the name alone."""
        if not isinstance(self.recipe.encoder, Backbone):
            return {}
        module = self.recipe.encoder.module
        held = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor) and not is_lazy(value)}
        weights = {name: value.detach().cpu() for name, value in held.items()}
        return {"backbone": f"{type(module).__name__}{HASH}{digest({}, weights)[:16]}"}


class FitResult(NamedTuple):
    """A map, the coordinates of its rows, and whether Ctrl-C ended the fit early."""

    fitted: FittedMap
    embedding: Array  # of the rows of this rank
    interrupted: bool


@dataclass(frozen=True)
class Saving:
    """Where checkpoints go, how often, and the one to resume from."""

    folder: CheckpointFolder
    minutes: float
    found: Checkpoint | None
    writes: bool = True  # whether this process does; of several ranks, the first one

    @property
    def seed(self) -> int:
        """The seed of the checkpoint, or a new one."""
        return check_seed(None) if self.found is None else int(self.found.run["seed"])


@contextmanager
def open_checkpoints(
    path: str | os.PathLike[str] | None, *, resume: bool, minutes: float, ranks: Ranks = ALONE
) -> Iterator[Saving | None]:
    """Open a folder for checkpoints, and read the last one to resume from it; None if none are wanted."""
    if path is None:
        if resume:
            raise ValueError("resume=True needs the folder of the checkpoints: pass checkpoint=FOLDER too")
        yield None
        return
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint={path!r}: expected the path of a folder")
    if not isinstance(minutes, int | float) or not minutes >= 0:
        raise ValueError(f"checkpoint_minutes={minutes!r}: expected a number, 0 or more")
    folder = CheckpointFolder(path)
    with ExitStack() as stack:

        def open_folder() -> Checkpoint | None:
            stack.enter_context(folder)
            folder.check_unused(resume=resume)
            return folder.latest() if resume else None

        yield Saving(folder, minutes, ranks.on_first(open_folder), ranks.is_first)


def fit_map(work: MapFit, observers: Iterable[Observer], saving: Saving | None = None) -> FitResult:
    """Train a network to map the rows, from its first weights or from a checkpoint."""
    history, account, interrupt, observers = History(), Account(), Interrupt(), list(observers)
    found = None if saving is None else saving.found
    if saving is not None and found is not None:
        _restore(saving, found, work, history, observers)
    recipe, scaling, device = work.recipe, work.scaling, work.runtime.device
    unfreeze = any(stage.unfreeze for stage in recipe.schedule)
    is_cached = uses_cached_front(recipe.encoder, recipe.augment, unfreeze=unfreeze)
    rows = to_model_rows(work.X, scaling, device, hold=not is_cached)
    rng = RandomStreams(work.seed, device).isolated("weights")
    plan = recipe.encoder if work.encoder is None else work.encoder
    encoder = _build(plan, rows.shape[1:], work.n_components, rng)
    _undo_scaling(encoder, scaling)
    encoder = work.runtime.place(encoder)
    if found is not None:
        encoder.load_state_dict(found.run["weights"])  # also if nothing is left to do
    events = train(
        encoder,
        rows,
        recipe,
        n_components=work.n_components,
        runtime=work.runtime,
        seed=work.seed,
        mean=scaling.scaled_mean(),
        labels=work.labels,
        neighbors=work.neighbors,
        landmarks=work.landmarks,
        anchors=work.anchors,
        resume=None if found is None else found.run,
        ranks=work.share.ranks,
        order=work.share.order,
        origin=Origin(work.X, work.metric, work.ids, scaling.standardized, work.n_passed, work.random_state),
    )
    watching: list[Observer] = [history, account, interrupt, *observers]
    if saving is not None and saving.writes:  # last: what another observer ends is written
        watching.append(_checkpoints(saving, work, history, observers))
    with memory_advice("training", TRAINING_ADVICE):
        watch(events, watching)
    fitted = FittedMap(encoder.eval(), recipe, scaling, work.n_components, [*history.stages], history.records)
    fitted.preparation = work.preparation
    embedding = check_map(embed(encoder, rows))
    fitted.account = account.close(embedding)
    interrupt.warn()
    return FitResult(fitted, embedding, interrupt.requested)


def _checkpoints(saving: Saving, work: MapFit, history: History, observers: list[Observer]) -> Checkpoints:
    def write(run: Run) -> None:
        with activity("writing a checkpoint"):
            states = [{"kind": type(each).__name__, "state": each.state_dict()} for each in _with_state(observers)]
            scaling = work.scaling.state_dict()
            saving.folder.write(Checkpoint(work.identity, run.state_dict(), scaling, history.records, history.stages, states))

    return Checkpoints(write, saving.minutes)


def _restore(saving: Saving, found: Checkpoint, work: MapFit, history: History, observers: list[Observer]) -> None:
    """Check that the checkpoint is that of this fit, and restore everything but the run itself."""
    path, n_stages = saving.folder.path, len(work.recipe.schedule)
    scale = float(work.scaling.scale)
    try:
        found.check(work.identity)
        for name, value in work.scaling.state_dict().items():
            if not torch.allclose(value, found.scaling[name], rtol=SAME_SCALING, atol=SAME_SCALING * scale):
                raise CheckpointError("is that of another fit:\n- rows: the values differ")
        stateful = _with_state(observers)
        kinds = [type(each).__name__ for each in stateful]
        if kinds != [each["kind"] for each in found.observers]:
            raise CheckpointError(f"was written with other observers than {', '.join(kinds) or 'none'}")
    except CheckpointError as problem:
        raise CheckpointError(f"the checkpoint in {path} {problem}\nChoose another folder to begin a new fit.") from None
    work.scaling.load_state_dict(found.scaling)
    history.records, history.stages = found.history, found.stages
    for each, saved in zip(stateful, found.observers, strict=True):
        each.load_state_dict(saved["state"])
    if is_shown():
        stage, epoch = found.run["stage"], found.run["epoch"]
        where = "at its end" if stage == n_stages else f"in stage {stage}, epoch {epoch + 1}"
        say(f"dre: resuming the fit in {path} {where}, after {found.run['steps']:,} steps")


def _with_state(observers: list[Observer]) -> list[Any]:
    return [each for each in observers if hasattr(each, "state_dict") and hasattr(each, "load_state_dict")]


def _build(plan: Encoder | nn.Module, shape: tuple[int, ...], n_components: int, rng: IsolatedRNG) -> nn.Module:
    if not isinstance(plan, Encoder):
        return copy.deepcopy(plan)  # the user's module is a parameter: fitting must not change it
    with rng():
        return plan.build(shape, n_components)


def _undo_scaling(encoder: nn.Module, scaling: Scaling) -> None:
    """Tell a backbone, which reads pixels, how they were scaled."""
    for part in encoder.modules():
        if isinstance(part, BackboneFeatures):
            part.undo_scaling(scaling.mean_image(), float(scaling.scale))


def compute_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    found = {"dre": dre.__version__}
    for library in COMPUTE:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
