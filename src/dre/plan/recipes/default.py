"""The default recipe and its variants, chosen by the kind and size of the data and by the device."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.affinity.graph_memory import graph_bytes
from dre.augment import Augment
from dre.augment.noise import LocalNoise, Noise
from dre.batches import Auto, Batches, Edges, Shuffled
from dre.encoder import Encoder
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.patch_mlp import PatchMLP
from dre.loss import Loss
from dre.loss.ce import CE
from dre.loss.kl import KL
from dre.loss.pair_sums import MAX_COMPONENTS
from dre.loss.shepard import Shepard
from dre.optimizer import Optimizer
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.schedule import Schedule, Stage, recursive

# There are two ways to solve a stage. By default the coordinates of all rows are optimized first, the network follows them, and
# then the loss goes through it against the bank of all rows. Where that is not possible the loss goes through the network from
# the start, on batches shuffled or sampled along the edges of the graph. benchmarks/NOTES.md lists what was tried.
#
# Of more rows than MOST, or than fit into memory, a sample is fitted in the first way: it keeps more of neighborhoods and
# distances than batches of edges from all rows. ``sample=len(X)`` fits all rows in the second way.

FEW = 500  # rows below which free coordinates are no better than principal components, and keep less of the global structure
LARGE = 20_000  # rows from which all pairs take too long on a CPU, and a large network does not memorize the rows
HUGE = 500_000  # rows from which the graph of a hidden layer costs more than it gives
MOST = {"cpu": 1_000_000, "cuda": 4_000_000}  # rows whose coordinates are optimized; beyond, batches need less memory
LEAST = 50_000  # rows that are fitted, however little memory is free
EPOCH_ROWS = 1_000_000  # beyond so many rows, each is seen less often
SAMPLE_VISITS = 1_500_000  # rows of a large sample that the network sees in each phase on a CPU: it has others to embed
SOURCES = ("h1", "h1", "h2", "h3")  # of the recursions; h1 twice: later blocks add less and cost trustworthiness
HEAVY = 0.5  # degrees of freedom: heavy tails pay in recursions, and in large maps that have none by default
GLOBAL = 0.3 * Shepard()  # beside the loss of free coordinates: it arranges clusters, and more of it would break some
GLOBAL_OF_FEW = 0.2 * Shepard()  # beside the loss of a network that has no free coordinates to follow
WIDE = 100  # columns beyond which the network reads so many principal components of them
FLAT = 2  # dimensions beyond which a map has room for the neighborhoods of the input, and recursions only lose some of them


@dataclass(frozen=True)
class Preset:
    """Settings for one kind and size of data on one kind of device."""

    encoder: Encoder
    batches: Batches
    optimizer: Optimizer
    noise: Augment
    first: Stage
    again: Stage
    recursions: int


def _preset(data: DataSpec) -> Preset:
    return _by_batches(data) if data.direct or why_direct(data) else _by_coordinates(data)


def rows_to_fit(data: DataSpec) -> int:
    """Return how many of the rows have their coordinates optimized; the network embeds the others.

    All, up to ``MOST``, if their graph fits into the free memory. Otherwise ``MOST``, or a half, a quarter, … of it: a little
    more or less free memory then makes no other map.
    """
    rows = MOST.get(data.device, MOST["cpu"])
    if data.n <= rows and _fits(data.n, data):
        return data.n
    while rows > LEAST and not _fits(rows, data):
        rows //= 2
    return min(data.n, rows)


def _fits(n: int, data: DataSpec) -> bool:
    k = Gaussian(30).count_neighbors(n)
    return data.free is None or graph_bytes(n, math.prod(data.shape), k, data.device) <= data.free


def why_direct(data: DataSpec) -> str | None:
    """Return why the coordinates of these rows can't be optimized on their own; None if they can."""
    if data.n > MOST.get(data.device, MOST["cpu"]):
        return f"{data.n:,} rows are more than the {MOST.get(data.device, MOST['cpu']):,} whose coordinates fit into memory"
    if data.device != "cpu" and data.n_components > MAX_COMPONENTS:
        return f"a GPU sums over all rows in up to {MAX_COMPONENTS} dimensions, not in {data.n_components}"
    return None


@dataclass(frozen=True)
class Size:
    """Network, batch and steps for data of fewer than so many rows."""

    rows: float
    width: int
    depth: int
    batch: int
    free: int  # steps of the coordinates of all rows in the first stage
    follow: int  # steps of the network in the first stage; a recursion makes half of them
    match: int
    recursions: int
    source: str = "h1"  # of the recursions, behind the features


# Narrow and deep networks need the fewest operations on a CPU; a GPU has them to spare. Recursions: few rows have no more to
# learn from hidden layers; some thousand are safer with their own columns beside them. Images gain little from a second one.
SIZES = {
    "cpu": (
        Size(FEW, 128, 4, 250, 0, 50, 150, 0),
        Size(2_000, 64, 6, 250, 350, 170, 340, 1, "+h1"),
        Size(4_000, 128, 6, 250, 350, 300, 480, 1, "+h1"),
        Size(6_000, 128, 6, 250, 350, 700, 1000, 1),
        Size(10_000, 128, 6, 250, 350, 940, 1320, 1),
        Size(LARGE, 128, 6, 250, 350, 1200, 1800, 3),
        Size(math.inf, 128, 6, 250, 200, 1400, 1000, 0),
    ),
    "cuda": (
        Size(FEW, 128, 4, 250, 0, 50, 150, 0),
        Size(4_000, 256, 4, 500, 350, 300, 800, 1, "+h1"),
        Size(10_000, 512, 4, 1000, 350, 600, 800, 2),
        Size(LARGE, 512, 4, 1000, 350, 500, 600, 3),
        Size(HUGE, 1024, 4, 1000, 350, 600, 1200, 2),
        Size(math.inf, 1024, 4, 5000, 500, 1000, 1000, 0),
    ),
}
FREE_AGAIN = 100  # steps of the coordinates of all rows in each recursion


def _by_coordinates(data: DataSpec) -> Preset:
    """Coordinates first, then a network that follows them, then the bank: the best map of any number of rows that fits."""
    n, images = data.n, data.images
    size = next(size for size in SIZES.get(data.device, SIZES["cuda"]) if n < size.rows)
    n_pcs = WIDE if math.prod(data.shape) > WIDE else None
    encoder: Encoder = MLP(size.width, depth=size.depth, n_pcs=n_pcs)
    if images:
        pcs = {"n_pcs": 300} if n >= LARGE and data.device != "cpu" else {}
        filters = {"filters": 8} if n >= LARGE and data.device == "cpu" else {}
        encoder = PatchMLP(size.width, depth=size.depth, **pcs, **filters)
    batches = Shuffled(size.batch)
    steps = batches.steps(n)
    loss: Loss = KL(alpha=HEAVY) if n >= LARGE and not size.recursions else KL()
    beside = GLOBAL if size.free else None
    visits = round(SAMPLE_VISITS / n) if data.sampled and n >= LARGE and data.device == "cpu" else 0
    first = Stage(
        encoder.first_source, Gaussian(30), loss if size.free else loss + GLOBAL_OF_FEW,
        max(visits, _epochs(size.match, steps)), start="pca", free=size.free, free_with=beside,
        follow=max(visits, _epochs(size.follow, steps)), against="bank",
    )  # fmt: skip
    again = Stage(
        encoder.first_source + size.source if size.source.startswith("+") else size.source,
        Gaussian(30), KL(alpha=HEAVY), _epochs(size.match / 2, steps),
        free=FREE_AGAIN, free_with=GLOBAL, follow=_epochs(size.follow / 2, steps), against="bank", optional=True,
    )  # fmt: skip
    recursions = min(1, size.recursions) if images and data.device == "cpu" else size.recursions
    recursions = recursions if data.n_components <= FLAT else 0
    noise = LocalNoise(0.75 if n < 4000 else 0.5)
    lr = 1e-2 if n < LARGE or data.device == "cpu" else 3e-3  # wide networks take smaller steps
    optimizer = Optimizer(lr, beta2=0.99, warmup=0.1, whiten=data.device == "cpu")  # a GPU captures its steps instead
    return Preset(encoder, batches, optimizer, noise, first, again, recursions)


def _by_batches(data: DataSpec) -> Preset:
    """The loss inside each batch: for many rows, and for losses that are not taken against a bank."""
    n, recursions = data.n, 2 if data.n < HUGE else 1
    alpha, epochs = HEAVY, (40, 20)
    encoder: Encoder
    batches: Batches
    if n < LARGE:
        encoder, batches, lr, alpha, recursions = PatchMLP() if data.images else MLP(256), Auto(500), 2e-3, 1.0, 1
        epochs = (max(40, _epochs(2000, batches.steps(n))), max(20, _epochs(1000, batches.steps(n))))
    elif data.device == "cpu":  # many small steps do better than few large ones; small batches hold few neighbors: edges
        if data.images:  # no recursion: a second graph costs more than it gives
            encoder, batches, lr, epochs, recursions = PatchMLP(filters=8), Edges(256), 3e-3, (6, 3), 0
        else:
            encoder, batches, lr, epochs, recursions = MLP(256, n_pcs=WIDE), Edges(512), 3e-3, (16, 8), 1
    elif data.images:
        encoder, batches, lr = PatchMLP(2048, depth=4, n_pcs=300), Auto(5000), 1e-3
        epochs = (60, 30) if n < HUGE else (30, 15)  # sampled edges have two ends
    else:
        encoder, batches, lr = ModelA(norm=True), Auto(2500), 2e-3
    if n > MOST.get(data.device, MOST["cpu"]):  # another graph in parts costs as much as the first
        recursions = 0
    share = min(1.0, EPOCH_ROWS / n)
    epochs = (_whole_epochs(share * epochs[0], data.device), _whole_epochs(share * epochs[1], data.device))
    first = Stage(encoder.first_source, Gaussian(30), KL(alpha=alpha), epochs[0])
    again = Stage("h1", Gaussian(30), KL(alpha=HEAVY), epochs[1])
    noise = Noise(round(0.6 * min(1.0, (2000 / n) ** 0.3), 2))  # small data need it, large data hardly
    return Preset(encoder, batches, Optimizer(lr), noise, first, again, recursions)


def _whole_epochs(epochs: float, device: str) -> int:
    """Whole epochs, at least one. An epoch of millions of rows takes minutes on a CPU, which rounds down."""
    return max(1, math.floor(epochs) if device == "cpu" else math.ceil(epochs))


def _epochs(steps: float, steps_of_epoch: int) -> int:
    """Small data need steps, not epochs."""
    return max(1, round(steps / steps_of_epoch))


def _recipe(preset: Preset, recursions: int | None, *, effort: float = 1.0) -> Recipe:
    if recursions is not None:  # who asks for them gets them
        preset = replace(preset, again=replace(preset.again, optional=False), recursions=recursions)
    stages = recursive(preset.first, preset.again, _sources(preset), preset.recursions)
    return Recipe(
        Schedule(*(_with_effort(stage, effort) for stage in stages)),
        preset.encoder,
        preset.batches,
        preset.optimizer,
        preset.noise,
    )


def _sources(preset: Preset) -> tuple[str, ...]:
    return SOURCES if preset.again.against == "batch" else (preset.again.source,)


def _with_effort(stage: Stage, effort: float) -> Stage:
    return replace(stage, epochs=math.ceil(effort * stage.epochs), follow=math.ceil(effort * stage.follow))


def auto(data: DataSpec, recursions: int | None) -> Recipe:
    """The best map for these data on this device."""
    return _recipe(_preset(data), recursions)


def fast(data: DataSpec, recursions: int | None) -> Recipe:
    """The default with a third of its steps, but at least one epoch, and at most one recursion."""
    preset = _preset(data)
    return _recipe(replace(preset, recursions=min(1, preset.recursions)), recursions, effort=1 / 3)


def _deep(data: DataSpec, affinity: Affinity, loss: Loss, recursions: int | None) -> Recipe:
    """A network trained inside each batch, on the neighborhoods of the input."""
    preset = _by_batches(data)
    first = replace(preset.first, source="x", affinity=affinity, loss=loss)
    return _recipe(replace(preset, first=first, again=replace(preset.again, affinity=affinity, loss=loss)), recursions or 0)


def deep_tsne(data: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with t-SNE's loss on the neighborhoods of the input, without recursion."""
    return _deep(data, Gaussian(30), KL(), recursions)


def deep_umap(data: DataSpec, recursions: int | None) -> Recipe:
    """A network trained with UMAP's loss, at UMAP's ratio of repulsion, without recursion."""
    return _deep(data, Fuzzy(15), CE(min_dist=0.1, negative_sample_rate=5), recursions)
