"""The default recipe and its variants, chosen by the kind and size of the data and by the device."""

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

# P over one graph of all rows, batches shuffled or sampled along its edges, one-cycle learning rates, and steps and noise by
# the size of the data. The numbers were chosen on validation rows: the last 10,000 training images of MNIST and
# Fashion-MNIST, and splits of the digits and of two single-cell sets other than those reported. benchmarks/NOTES.md lists
# what was tried.

LARGE = 20_000  # rows from which a large network does not memorize them
HUGE = 500_000  # rows from which the graph of a hidden layer costs more than it gives
EPOCH_ROWS = 1_000_000  # beyond so many rows, each is seen less often
SOURCES = ("h1", "h1", "h2", "h3")  # of the recursions; h1 twice: later blocks add less and cost trustworthiness


@dataclass(frozen=True)
class Preset:
    """Settings for one kind and size of data on one kind of device."""

    encoder: Encoder
    batches: Batches
    lr: float
    recursions: int
    alpha: float  # of the first stage; heavy tails pay once there are many rows to separate. Recursions always have 0.5
    epochs: tuple[int, int] = (40, 20)  # at least, of the first stage and of each recursion
    steps: int = 0  # at least, of the first stage, and half of it of each recursion: small data need steps, not epochs


def _preset(data: DataSpec) -> Preset:
    if data.n < LARGE:
        return Preset(PatchMLP() if data.images else MLP(256), Auto(500), 2e-3, 1, 1.0, steps=2000)
    recursions = 2 if data.n < HUGE else 1
    if data.device == "cpu":  # many small steps do better than few large ones; small batches hold few neighbors: edges
        if data.images:  # no recursion: a second graph costs more than it gives
            return Preset(PatchMLP(filters=8), Edges(256), 3e-3, 0, 0.5, epochs=(6, 3))
        return Preset(MLP(256, n_pcs=100), Edges(512), 3e-3, 1, 0.5, epochs=(16, 8))
    if data.images:
        epochs = (60, 30) if data.n < HUGE else (30, 15)  # sampled edges have two ends
        return Preset(PatchMLP(2048, depth=4, n_pcs=300), Auto(5000), 1e-3, recursions, 0.5, epochs=epochs)
    return Preset(ModelA(norm=True), Auto(2500), 2e-3, recursions, 0.5, steps=960)


def _noise(n: int) -> Noise:
    """The regularizer that small data need, and large data hardly."""
    return Noise(round(0.6 * min(1.0, (2000 / n) ** 0.3), 2))


def _recipe(data: DataSpec, first: Stage, again: Stage, recursions: int, *, effort: float = 1.0) -> Recipe:
    """Give the stages the epochs that these data need."""
    preset = _preset(data)
    steps = preset.steps / preset.batches.steps(data.n)
    share = min(1.0, EPOCH_ROWS / data.n)
    epochs = [
        math.ceil(effort * max(share * least, need)) for least, need in zip(preset.epochs, (steps, steps / 2), strict=True)
    ]
    stages = recursive(replace(first, epochs=epochs[0]), replace(again, epochs=epochs[1]), SOURCES, recursions)
    return Recipe(Schedule(*stages), preset.encoder, preset.batches, Optimizer(preset.lr), _noise(data.n))


def _default(data: DataSpec, recursions: int, *, effort: float = 1.0) -> Recipe:
    preset = _preset(data)
    first = Stage(preset.encoder.first_source, Gaussian(30), KL(alpha=preset.alpha), 1)
    return _recipe(data, first, Stage("h1", Gaussian(30), KL(alpha=0.5), 1), recursions, effort=effort)


def auto(data: DataSpec, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _default(data, _preset(data).recursions if recursions is None else recursions)


def fast(data: DataSpec, recursions: int | None) -> Recipe:
    """The default with a third of its steps, but at least one epoch, and at most one recursion."""
    return _default(data, min(1, _preset(data).recursions) if recursions is None else recursions, effort=1 / 3)


def _deep(data: DataSpec, affinity: Affinity, loss: Loss, recursions: int | None) -> Recipe:
    return _recipe(data, Stage("x", affinity, loss, 1), Stage("h1", affinity, loss, 1), recursions or 0)


def deep_tsne(data: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with t-SNE's loss on the neighborhoods of the input, without recursion."""
    return _deep(data, Gaussian(30), KL(), recursions)


def deep_umap(data: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with UMAP's loss, at UMAP's ratio of repulsion, without recursion."""
    return _deep(data, Fuzzy(15), CE(min_dist=0.1, negative_sample_rate=5), recursions)
