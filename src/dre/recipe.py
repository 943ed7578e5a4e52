"""Everything that a run needs beside the data, and the recipes that have names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import nn

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.augment import Augment
from dre.augment.noise import Noise
from dre.batches import Auto, Batches, Fixed
from dre.encoder import Encoder
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.encoder.strided import Strided
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

    def __str__(self) -> str:
        encoder = self.encoder if isinstance(self.encoder, Encoder) else type(self.encoder).__name__
        lines = [f"encoder   {encoder}", f"batches   {self.batches}", f"optimiser {self.optimiser}"]
        lines += [f"augment   {self.augment}"] if self.augment else []
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
    learning_rate: float | None = None
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
    batches = said.batches if said.batches is not None else recipe.batches
    if isinstance(batches, int):
        batches = replace(recipe.batches, size=batches) if hasattr(recipe.batches, "size") else Auto(batches)  # type: ignore[type-var]
    optimiser = recipe.optimiser if said.learning_rate is None else replace(recipe.optimiser, lr=said.learning_rate)
    encoder = recipe.encoder if said.encoder is None else said.encoder
    augment = recipe.augment if said.augment is None else said.augment
    return replace(recipe, schedule=schedule, encoder=encoder, batches=batches, optimiser=optimiser, augment=augment)


def _adjusted(schedule: Schedule, said: Overrides) -> Schedule:
    def affinity(a: Affinity) -> Affinity:
        if isinstance(a, Gaussian) and said.perplexity is not None:
            return replace(a, perplexity=said.perplexity)
        if isinstance(a, Fuzzy) and said.n_neighbors is not None:
            return replace(a, n_neighbors=said.n_neighbors)
        return a

    def loss(term: Loss) -> Loss:
        if isinstance(term, Sum):
            return Sum(tuple((weight, loss(part)) for weight, part in term.terms))
        return replace(term, min_dist=said.min_dist) if isinstance(term, CE) and said.min_dist is not None else term

    return Schedule(*(replace(s, affinity=affinity(s.affinity), loss=loss(s.loss)) for s in schedule))


def _recursive(first: Stage, again: Stage, sources: Sequence[str], recursions: int | None, usual: int) -> list[Stage]:
    """The first stage on x, then ``again`` on one source after the other; beyond the last source, on the last."""
    count = usual if recursions is None else recursions
    if count < 0:
        raise ValueError(f"recursions={count}: must not be negative")
    return [first, *(replace(again, source=sources[min(i, len(sources) - 1)]) for i in range(count))]


# The paper, as published.

HIDDEN = ("h1", "h2", "h3")
PAPER_OPTIMISER = Optimiser(1e-3, eps=1e-7, policy="constant")


def _paper(facts: Facts, stages: list[Stage]) -> Recipe:
    encoder = ModelB() if facts.images else ModelA()
    return Recipe(Schedule(*stages), encoder, Fixed(2500), PAPER_OPTIMISER, precision="float32")


def _paper_stages(affinity: Affinity, loss: Loss, recursions: int | None, usual: int = 3) -> list[Stage]:
    return _recursive(Stage("x", affinity, loss, 100), Stage("h1", affinity, loss, 50), HIDDEN, recursions, usual)


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


# Ours: P over one graph of all rows, batches redrawn, one-cycle rates, and steps and noise that fit the size of the data.


def _ours(facts: Facts, affinity: Affinity, loss: Loss, recursions: int | None, usual: int, *, effort: float = 1.0) -> Recipe:
    gpu = facts.device != "cpu"
    encoder: Encoder = (Strided() if facts.images else ModelA(norm=True)) if gpu and facts.n > 20_000 else MLP(256)
    size = 5000 if gpu and facts.n > 20_000 else 500
    steps = math.ceil(facts.n / size)
    first = math.ceil(effort * max(40, 2000 / steps))
    again = math.ceil(effort * max(20, 600 / steps))
    stages = _recursive(
        Stage("x", affinity, loss, first), Stage("h1", affinity, loss, again), ("h1", "h1", "h2", "h3"), recursions, usual
    )
    sigma = 0.8 * min(1.0, 2000 / facts.n)
    noise = Noise(round(sigma, 3)) if sigma >= 0.05 else None
    return Recipe(Schedule(*stages), encoder, Auto(size), Optimiser(2e-3), noise)


def auto(facts: Facts, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _ours(facts, Gaussian(30), KL(alpha=0.5), recursions, 2 if facts.n > 20_000 else 1)


def fast(facts: Facts, recursions: int | None) -> Recipe:
    """The default with a third of its steps."""
    return _ours(facts, Gaussian(30), KL(alpha=0.5), recursions, 1, effort=1 / 3)


def deep_tsne(facts: Facts, recursions: int | None) -> Recipe:
    """No recursion: a network trained with t-SNE's loss."""
    return _ours(facts, Gaussian(30), KL(), recursions, 0)


def deep_umap(facts: Facts, recursions: int | None) -> Recipe:
    """No recursion: a network trained with UMAP's loss."""
    return _ours(facts, Fuzzy(15), CE(min_dist=0.1, negatives=5), recursions, 0)


RECIPES: dict[str, Callable[[Facts, int | None], Recipe]] = {
    "auto": auto,
    "paper": paper,
    "paper-tsne": paper_tsne,
    "paper-umap": paper_umap,
    "deep-tsne": deep_tsne,
    "deep-umap": deep_umap,
    "fast": fast,
}
