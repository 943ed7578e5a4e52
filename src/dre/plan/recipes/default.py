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
from dre.encoder.patch_mlp import PatchMLP
from dre.loss import Loss
from dre.loss.ce import CE
from dre.loss.kl import KL
from dre.optimizer import Optimizer
from dre.plan.recipe import DataSpec, Recipe
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
class Preset:
    """What the kind and size of the data and the device call for."""

    encoder: Encoder
    batches: Batches
    rate: float
    recursions: int
    alpha: float  # of the first stage: heavier tails pay once there are many rows to separate; recursions always have 0.5
    epochs: tuple[int, int] = (40, 20)  # of the first stage and of each recursion, at least
    steps: int = 0  # of the first stage, at least, and half of it of each recursion: small data need steps, not epochs


def _preset(facts: DataSpec) -> Preset:
    if facts.n < LARGE:
        return Preset(PatchMLP() if facts.images else MLP(256), Auto(500), 2e-3, 1, 1.0, steps=2000)
    recursions = 2 if facts.n < HUGE else 1
    if facts.device == "cpu":  # many small steps do better there than few large ones; small batches hold few neighbours: edges
        if facts.images:
            # No recursion: a second graph costs more than it gives.
            return Preset(PatchMLP(filters=8), Edges(256), 3e-3, 0, 0.5, epochs=(6, 3))
        return Preset(MLP(256, n_pcs=100), Edges(512), 3e-3, 1, 0.5, epochs=(16, 8))
    if facts.images:
        epochs = (60, 30) if facts.n < HUGE else (30, 15)  # of sampled edges, which have two ends
        return Preset(PatchMLP(2048, depth=4, n_pcs=300), Auto(5000), 1e-3, recursions, 0.5, epochs=epochs)
    return Preset(ModelA(norm=True), Auto(2500), 2e-3, recursions, 0.5, steps=960)


def _noise(n: int) -> Noise:
    """The regulariser that small data need, and large data hardly."""
    return Noise(round(0.6 * min(1.0, (2000 / n) ** 0.3), 2))


def _recipe(facts: DataSpec, first: Stage, again: Stage, recursions: int, *, effort: float = 1.0) -> Recipe:
    """The stages with the epochs that these data need."""
    preset = _preset(facts)
    steps = preset.steps / preset.batches.steps(facts.n)
    share = min(1.0, ENOUGH / facts.n)
    epochs = [
        math.ceil(effort * max(share * least, need)) for least, need in zip(preset.epochs, (steps, steps / 2), strict=True)
    ]
    stages = recursive(replace(first, epochs=epochs[0]), replace(again, epochs=epochs[1]), AGAIN, recursions)
    return Recipe(Schedule(*stages), preset.encoder, preset.batches, Optimizer(preset.rate), _noise(facts.n))


def _default(facts: DataSpec, recursions: int, *, effort: float = 1.0) -> Recipe:
    preset = _preset(facts)
    first = Stage(preset.encoder.first_source, Gaussian(30), KL(alpha=preset.alpha), 1)
    return _recipe(facts, first, Stage("h1", Gaussian(30), KL(alpha=0.5), 1), recursions, effort=effort)


def auto(facts: DataSpec, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _default(facts, _preset(facts).recursions if recursions is None else recursions)


def fast(facts: DataSpec, recursions: int | None) -> Recipe:
    """The default with a third of its steps, or one epoch where it has few, and at most one recursion."""
    return _default(facts, min(1, _preset(facts).recursions) if recursions is None else recursions, effort=1 / 3)


def _deep(facts: DataSpec, affinity: Affinity, loss: Loss, recursions: int | None) -> Recipe:
    return _recipe(facts, Stage("x", affinity, loss, 1), Stage("h1", affinity, loss, 1), recursions or 0)


def deep_tsne(facts: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with t-SNE's loss on the rows as they are, without recursion."""
    return _deep(facts, Gaussian(30), KL(), recursions)


def deep_umap(facts: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with UMAP's loss on the rows as they are, at UMAP's ratio of repulsion, without recursion."""
    return _deep(facts, Fuzzy(15), CE(min_dist=0.1, negatives=5), recursions)
