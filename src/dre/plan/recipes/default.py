"""Our own, fitted to the kind and size of the data and to the device."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.augment.noise import Noise
from dre.batches import Auto, Batches, Edges
from dre.encoder import Encoder
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.patch_mlp import Filtered
from dre.loss import Loss
from dre.loss.ce import CE
from dre.loss.kl import KL
from dre.optimizer import Optimiser
from dre.plan.recipe import Facts, Recipe
from dre.plan.schedule import Schedule, Stage, recursive

# Ours: P over one graph of all rows, batches redrawn or drawn along its edges, one-cycle rates, and steps and noise that fit
# the size of the data.
# The numbers were chosen on validation rows: the last 10,000 training images of MNIST and Fashion-MNIST, and other splits of
# the digits and of two single-cell sets than those that are reported. benchmarks/NOTES.md has what was tried.

LARGE = 20_000  # rows from which a network can be large without learning the rows by heart
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
    stages = recursive(replace(first, epochs=epochs[0]), replace(again, epochs=epochs[1]), AGAIN, recursions)
    return Recipe(Schedule(*stages), regime.encoder, regime.batches, Optimiser(regime.rate), _noise(facts.n))


def _best(facts: Facts, recursions: int, *, effort: float = 1.0) -> Recipe:
    regime = _regime(facts)
    first = Stage(regime.encoder.first_source, Gaussian(30), KL(alpha=regime.alpha), 1)
    return _ours(facts, first, Stage("h1", Gaussian(30), KL(alpha=0.5), 1), recursions, effort=effort)


def auto(facts: Facts, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _best(facts, _regime(facts).recursions if recursions is None else recursions)


def fast(facts: Facts, recursions: int | None) -> Recipe:
    """The default with a third of its steps, or one epoch where it has few, and at most one recursion."""
    return _best(facts, min(1, _regime(facts).recursions) if recursions is None else recursions, effort=1 / 3)


def _deep(facts: Facts, affinity: Affinity, loss: Loss, recursions: int | None) -> Recipe:
    return _ours(facts, Stage("x", affinity, loss, 1), Stage("h1", affinity, loss, 1), recursions or 0)


def deep_tsne(facts: Facts, recursions: int | None) -> Recipe:
    """A network trained with t-SNE's loss on the rows as they are, without recursion."""
    return _deep(facts, Gaussian(30), KL(), recursions)


def deep_umap(facts: Facts, recursions: int | None) -> Recipe:
    """A network trained with UMAP's loss on the rows as they are, at UMAP's ratio of repulsion, without recursion."""
    return _deep(facts, Fuzzy(15), CE(min_dist=0.1, negatives=5), recursions)
