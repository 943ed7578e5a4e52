"""Everything that a run needs beside the data, and the recipes that have names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from torch import nn

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.augment import Augment, parse_augment
from dre.augment.noise import Noise
from dre.batches import BATCHES, Auto, Batches, Edges, Fixed
from dre.encoder import ENCODERS, Encoder
from dre.encoder.filtered import Filtered
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.loss import Loss, Sum
from dre.loss.ce import CE
from dre.loss.kl import KL
from dre.notation import unknown
from dre.optimiser import Optimiser
from dre.schedule import Schedule, Stage


@dataclass(frozen=True)
class Recipe:
    """A schedule with all that stands around it."""

    schedule: Schedule
    encoder: Encoder | nn.Module
    batches: Batches
    optimiser: Optimiser
    augment: Augment | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        """Texts are read, as everywhere."""
        readers = {"schedule": Schedule.parse, "encoder": ENCODERS.parse, "batches": BATCHES.parse, "augment": parse_augment}
        for name, read in readers.items():
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, read(getattr(self, name)))

    def fitted_to(self, n: int) -> Recipe:
        """With every affinity that n rows, or the batches made of them, are too few for adapted (and one warning for each)."""
        smallest = n // self.batches.steps(n)
        fitted = {a: a.fitted_to(n if a.over == "graph" else smallest) for a in {s.affinity: None for s in self.schedule}}
        return replace(self, schedule=Schedule(*(replace(s, affinity=fitted[s.affinity]) for s in self.schedule)))

    def __str__(self) -> str:
        encoder = self.encoder if isinstance(self.encoder, Encoder) else type(self.encoder).__name__
        lines = [f"encoder   {encoder}", f"batches   {self.batches}", f"optimiser {self.optimiser}"]
        lines += [f"augment   {self.augment}"] if self.augment else []
        lines += [f"precision {self.precision}"]
        return "\n".join([*lines, *(f"stage {i}   {stage}" for i, stage in enumerate(self.schedule))])


@dataclass(frozen=True)
class Facts:
    """What a named recipe is fitted to."""

    n: int
    shape: tuple[int, ...]  # of one row: (d,) or (channels, height, width)
    device: str  # "cpu", "cuda", ...

    @property
    def images(self) -> bool:
        return len(self.shape) == 3


@dataclass(frozen=True)
class Overrides:
    """What the user said, each taking the place of the recipe's own; None leaves it."""

    schedule: Schedule | None = None
    encoder: Encoder | nn.Module | None = None
    perplexity: float | None = None
    n_neighbors: int | None = None
    min_dist: float | None = None
    recursions: int | None = None
    batches: Batches | int | None = None
    optimiser: Optimiser | float | None = None  # a number is a learning rate
    augment: Augment | None = None


def resolve(recipe: str | Recipe, facts: Facts, said: Overrides) -> Recipe:
    """The recipe that is run: the named one for these data and this device, with what the user said in its place."""
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(unknown("recipe", recipe, list(RECIPES)))
        if said.schedule is not None and said.recursions is not None:
            raise ValueError("recursions and schedule were both given: a schedule already says how many recursions there are")
        recipe = RECIPES[recipe](facts, said.recursions)
    elif said.recursions is not None:
        raise ValueError("recursions was given beside a Recipe object: its schedule already says how many there are")
    schedule = _adjusted(said.schedule or recipe.schedule, said)
    planned = recipe.batches
    if planned.along_graph and said.schedule is not None and any(stage.affinity.over == "batch" for stage in schedule):
        planned = Auto(INSIDE)
    batches = planned.resized(said.batches) if isinstance(said.batches, int) else said.batches or planned
    optimiser = recipe.optimiser if said.optimiser is None else said.optimiser
    if not isinstance(optimiser, Optimiser):
        optimiser = replace(recipe.optimiser, lr=optimiser)
    if said.schedule is None:  # a stage with a rate of its own keeps its proportion to the others
        share = optimiser.lr / recipe.optimiser.lr
        schedule = Schedule(*(replace(s, lr=None if s.lr is None else s.lr * share) for s in schedule))
    encoder = recipe.encoder if said.encoder is None else said.encoder
    if said.schedule is None and said.encoder is not None:
        schedule = Schedule(_reading(schedule[0], recipe.encoder, encoder), *schedule.stages[1:])
    augment = recipe.augment if said.augment is None else said.augment
    return replace(recipe, schedule=schedule, encoder=encoder, batches=batches, optimiser=optimiser, augment=augment)


def _reading(stage: Stage, planned: Encoder | nn.Module, taken: Encoder | nn.Module) -> Stage:
    """A first stage that read what the planned encoder computes, reading what the one that takes its place does."""
    if stage.source == "x" or not isinstance(planned, Encoder) or stage.source != planned.first_source:
        return stage
    return replace(stage, source=taken.first_source if isinstance(taken, Encoder) else "x")


def _adjusted(schedule: Schedule, said: Overrides) -> Schedule:
    """The schedule with the user's perplexity, n_neighbors and min_dist in every affinity and loss that has one."""
    stages = list(schedule)
    for name in ("perplexity", "n_neighbors", "min_dist"):
        value = getattr(said, name)
        if value is None:
            continue
        if not any(_has(stage, name) for stage in stages):
            raise ValueError(
                f"{name}={value} was given, but no stage has a {name} (gaussian has a perplexity, fuzzy n_neighbors, ce a "
                f"min_dist):\n{schedule}\nPass another recipe, or a schedule."
            )
        stages = [replace(s, affinity=_with(s.affinity, name, value), loss=_with_in_terms(s.loss, name, value)) for s in stages]
    return Schedule(*stages)


Plan = TypeVar("Plan", Affinity, Loss)


def _with(plan: Plan, name: str, value: float) -> Plan:
    return replace(plan, **{name: value}) if hasattr(plan, name) else plan  # type: ignore[type-var]


def _with_in_terms(loss: Loss, name: str, value: float) -> Loss:
    if isinstance(loss, Sum):
        return Sum(tuple((weight, _with(term, name, value)) for weight, term in loss.terms))
    return _with(loss, name, value)


def _has(stage: Stage, name: str) -> bool:
    terms = [term for _, term in stage.loss.terms] if isinstance(stage.loss, Sum) else [stage.loss]
    return any(hasattr(plan, name) for plan in (stage.affinity, *terms))


def _recursive(first: Stage, again: Stage, sources: Sequence[str], recursions: int) -> list[Stage]:
    """The first stage, then ``again`` on one source after the other; beyond the last source, on the last."""
    if recursions < 0:
        raise ValueError(f"recursions={recursions}: must not be negative")
    return [first, *(replace(again, source=sources[min(i, len(sources) - 1)]) for i in range(recursions))]


# The paper, as published.

HIDDEN = ("h1", "h2", "h3")
PAPER_OPTIMISER = Optimiser(1e-3, eps=1e-7, policy="constant")


def _paper(facts: Facts, stages: list[Stage]) -> Recipe:
    encoder = ModelB() if facts.images else ModelA()
    return Recipe(Schedule(*stages), encoder, Fixed(2500), PAPER_OPTIMISER, precision="float32")


def _paper_stages(affinity: Affinity, loss: Loss, recursions: int | None) -> list[Stage]:
    count = len(HIDDEN) if recursions is None else recursions
    return _recursive(Stage("x", affinity, loss, 100), Stage("h1", affinity, loss, 50), HIDDEN, count)


def paper_tsne(facts: Facts, recursions: int | None) -> Recipe:
    """DR t-SNE: 100 epochs on x, 50 on each of h1, h2, h3; P inside fixed batches of 2500."""
    return _paper(facts, _paper_stages(Gaussian(30, over="batch"), KL(), recursions))


def paper_umap(facts: Facts, recursions: int | None) -> Recipe:
    """The recursive UMAP loss alone."""
    return _paper(facts, _paper_stages(Fuzzy(15, over="batch"), CE(min_dist=0.001), recursions))


def paper(facts: Facts, recursions: int | None) -> Recipe:
    """DRE: DR t-SNE, then 100 epochs with the UMAP loss on the last source at a tenth of the rate."""
    stages = _paper_stages(Gaussian(30, over="batch"), KL(), recursions)
    return _paper(facts, [*stages, Stage(stages[-1].source, Fuzzy(15, over="batch"), CE(min_dist=0.001), 100, lr=1e-4)])


# Ours: P over one graph of all rows, batches redrawn or drawn along its edges, one-cycle rates, and steps and noise that fit
# the size of the data.
# The numbers were chosen on validation rows: the last 10,000 training images of MNIST and Fashion-MNIST, and other splits of
# the digits and of two single-cell sets than those that are reported. benchmarks/NOTES.md has what was tried.

LARGE = 20_000  # rows from which a network can be large without learning the rows by heart
INSIDE = 1000  # rows of a batch in which neighbours are sought, where a recipe's own batches would follow a graph
HUGE = 500_000  # rows from which the graph of a hidden layer costs more than it gives
ENOUGH = 1_000_000  # rows in an epoch that is one: where there are more, each is seen less often
AGAIN = ("h1", "h1", "h2", "h3")  # the first hidden block twice: later ones add less and cost trustworthiness


@dataclass(frozen=True)
class Regime:
    """What the kind and size of the data and the device call for."""

    encoder: Encoder
    batches: Batches
    rate: float
    recursions: int
    alpha: float  # of the first stage: heavier tails pay once there are many rows to separate; recursions always have 0.5
    epochs: tuple[int, int] = (40, 20)  # of the first stage and of each recursion, at least
    steps: int = 0  # of the first stage, at least, and half of it of each recursion: small data need steps, not epochs


def _regime(facts: Facts) -> Regime:
    if facts.n < LARGE:
        return Regime(Filtered() if facts.images else MLP(256), Auto(500), 2e-3, 1, 1.0, steps=2000)
    recursions = 2 if facts.n < HUGE else 1
    if facts.device == "cpu":  # many small steps do better there than few large ones; small batches hold few neighbours: edges
        if facts.images:
            # No recursion: a second graph costs more than it gives.
            return Regime(Filtered(filters=8), Edges(256), 3e-3, 0, 0.5, epochs=(6, 3))
        return Regime(MLP(256, front=100), Edges(512), 3e-3, 1, 0.5, epochs=(16, 8))
    if facts.images:
        epochs = (60, 30) if facts.n < HUGE else (30, 15)  # of sampled edges, which have two ends
        return Regime(Filtered(2048, depth=4, front=300), Auto(5000), 1e-3, recursions, 0.5, epochs=epochs)
    return Regime(ModelA(norm=True), Auto(2500), 2e-3, recursions, 0.5, steps=960)


def _noise(n: int) -> Noise:
    """The regulariser that small data need, and large data hardly."""
    return Noise(round(0.6 * min(1.0, (2000 / n) ** 0.3), 2))


def _ours(facts: Facts, first: Stage, again: Stage, recursions: int, *, effort: float = 1.0) -> Recipe:
    """The stages with the epochs that these data need."""
    regime = _regime(facts)
    steps = regime.steps / regime.batches.steps(facts.n)
    share = min(1.0, ENOUGH / facts.n)
    epochs = [
        math.ceil(effort * max(share * least, need)) for least, need in zip(regime.epochs, (steps, steps / 2), strict=True)
    ]
    stages = _recursive(replace(first, epochs=epochs[0]), replace(again, epochs=epochs[1]), AGAIN, recursions)
    return Recipe(Schedule(*stages), regime.encoder, regime.batches, Optimiser(regime.rate), _noise(facts.n))


def _best(facts: Facts, recursions: int, *, effort: float = 1.0) -> Recipe:
    regime = _regime(facts)
    first = Stage(regime.encoder.first_source, Gaussian(30), KL(alpha=regime.alpha), 1)
    return _ours(facts, first, Stage("h1", Gaussian(30), KL(alpha=0.5), 1), recursions, effort=effort)


def auto(facts: Facts, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _best(facts, _regime(facts).recursions if recursions is None else recursions)


def fast(facts: Facts, recursions: int | None) -> Recipe:
    """The default with a third of its steps and at most one recursion."""
    return _best(facts, min(1, _regime(facts).recursions) if recursions is None else recursions, effort=1 / 3)


def _deep(facts: Facts, affinity: Affinity, loss: Loss, recursions: int | None) -> Recipe:
    return _ours(facts, Stage("x", affinity, loss, 1), Stage("h1", affinity, loss, 1), recursions or 0)


def deep_tsne(facts: Facts, recursions: int | None) -> Recipe:
    """A network trained with t-SNE's loss on the rows as they are, without recursion."""
    return _deep(facts, Gaussian(30), KL(), recursions)


def deep_umap(facts: Facts, recursions: int | None) -> Recipe:
    """A network trained with UMAP's loss on the rows as they are, at UMAP's ratio of repulsion, without recursion."""
    return _deep(facts, Fuzzy(15), CE(min_dist=0.1, negatives=5), recursions)


RECIPES: dict[str, Callable[[Facts, int | None], Recipe]] = {
    "auto": auto,
    "paper": paper,
    "paper-tsne": paper_tsne,
    "paper-umap": paper_umap,
    "deep-tsne": deep_tsne,
    "deep-umap": deep_umap,
    "fast": fast,
}
