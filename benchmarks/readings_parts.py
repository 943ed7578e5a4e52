"""Parts of the readings of the paper that the package does not have: losses, an affinity, batches, Adam, and networks.

The losses, the affinity and the batches can be written in a schedule or in ``batch_size`` once this module is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from dre import KL, Fuzzy, ModelB, Optimizer
from dre.affinity import Affinity
from dre.batches import Batches, LazyBatch, presampled
from dre.encoder.network import ChannelsLast, FlattenChannelsLast, Network
from dre.loss import Loss, Step
from dre.loss.curves import fit_ab

HIDDEN = (2000, 500, 100)


@dataclass(frozen=True)
class Exaggerated(Loss, name="exaggerated"):
    """t-SNE's loss with its attraction multiplied by a factor."""

    factor: float = 12
    capturable = True

    def __call__(self, step: Step) -> Tensor:
        attraction = 2 * (step.pairs.weight * torch.log1p(step.pairs.at(_squared_distances(step.y)))).sum()
        loss: Tensor = KL()(step) + (self.factor - 1) * attraction / step.pairs.total
        return loss


@dataclass(frozen=True)
class NormalizedCE(Loss, name="normalized-ce"):
    """UMAP's cross entropy with V and W both divided by their sums, as in the authors' programs."""

    _: KW_ONLY
    min_dist: float = 0.001
    capturable = True

    def __call__(self, step: Step) -> Tensor:
        a, b = fit_ab(self.min_dist, 1.0)
        others = 1 - torch.eye(len(step.y), device=step.y.device)
        w = others / (1 + a * _squared_distances(step.y).clamp_min(1e-12) ** b)
        v, w = (each / each.sum() for each in (step.pairs.dense(len(step.y)), w))
        return (v.xlogy(v) - v * w.clamp_min(1e-30).log()).sum() + ((1 - v) * (torch.log1p(-v) - torch.log1p(-w))).sum()


def _squared_distances(y: Tensor) -> Tensor:
    return (y[:, None] - y).square().sum(-1)


@dataclass(frozen=True)
class FuzzyRanks(Affinity, name="fuzzy-ranks"):
    """UMAP's memberships of the neighbors of these ranks alone; the authors' programs take 15 to 29 instead of 1 to 15."""

    first: int = 15
    last: int = 29
    _: KW_ONLY
    scope: str = "batch"

    def clamp_to(self, n: int) -> FuzzyRanks:
        return self if n > self.last else replace(self, first=1, last=n - 1)

    def count_neighbors(self, n: int) -> int:
        return min(n - 1, self.last)

    def conditional(self, distances: Tensor) -> Tensor:
        weights = torch.zeros_like(distances, dtype=torch.double)
        weights[:, self.first - 1 :] = Fuzzy().conditional(distances[:, self.first - 1 :])
        return weights

    def combine(self, forward: Tensor, backward: Tensor) -> Tensor:
        return Fuzzy().combine(forward, backward)


@dataclass(frozen=True)
class Recut(Batches, name="recut"):
    """Fixed batches that are cut anew at each stage, and within a stage every so many epochs."""

    size: int = 2500
    every: int = 1_000_000
    capturable = True

    @property
    def rows(self) -> int:
        return self.size

    def resized(self, size: int) -> Recut:
        return replace(self, size=size)

    def steps(self, n: int) -> int:
        return -(-n // self.size)

    def sampler(self, target: Any, n: int, streams: Any) -> Any:
        kept: dict[int, list[LazyBatch]] = {}

        def sample(epoch: int) -> list[LazyBatch]:
            cut = epoch // self.every
            if cut not in kept:
                kept.clear()
                generator = streams.generator("batches", cut)
                parts = torch.randperm(n, generator=generator, device=generator.device).tensor_split(self.steps(n))
                kept[cut] = [presampled(ids, target.block(ids)) for ids in parts]
            return kept[cut]

        return sample


@dataclass(frozen=True)
class Continued(Optimizer):
    """Adam that keeps its moments from one stage to the next."""

    last: list[Any] = field(default_factory=list, compare=False, repr=False, kw_only=True)

    def start(self, parameters: Iterable[nn.Parameter], steps: int, **rest: Any) -> Any:
        state = super().start(parameters, steps, **rest)
        if self.last:
            state.load_state_dict({**self.last.pop().state_dict(), "position": 0})
        self.last.append(state)
        return state

    def __str__(self) -> str:
        return f"{Optimizer(self.lr, eps=self.eps, policy=self.policy)}, never restarted"


class VariantNetwork(Network):
    """A network whose training steps can be captured."""

    capturable = True


@dataclass(frozen=True)
class Variant:
    """Model B with what the text leaves open about its layers; ``build`` creates it with weights of this seed.

    Parameters
    ----------
    conv_norm : bool, default=False
        Batch norm before the ReLU of convolutions.
    dense : {"relu", "linear", "norm relu", "relu norm"}, default="relu"
        What follows each dense layer.
    valid : bool, default=False
        Convolutions without padding, the default of Keras.
    keras_weights : bool, default=False
        Glorot's uniform weights and zero biases.
    """

    _: KW_ONLY
    conv_norm: bool = False
    dense: str = "relu"
    valid: bool = False
    keras_weights: bool = False

    def build(self, shape: tuple[int, ...], seed: int) -> VariantNetwork:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            features = _valid_features(shape[0]) if self.valid else _features(shape, norm=self.conv_norm)
            with torch.no_grad():
                size = features.eval()(torch.zeros(1, *shape)).shape[1]
            blocks = []
            for width in HIDDEN:
                layers = {"relu": nn.ReLU(), "norm": nn.BatchNorm1d(width), "linear": nn.Identity()}
                blocks.append(nn.Sequential(nn.Linear(size, width), *(layers[word] for word in self.dense.split())))
                size = width
            network = VariantNetwork(features.train(), blocks, nn.Linear(size, 2))
            if self.keras_weights:
                network.apply(_as_in_keras)
            return network


def _features(shape: tuple[int, ...], *, norm: bool) -> nn.Module:
    network = ModelB(norm=norm).build(shape, 2)
    assert isinstance(network, Network)
    return network.features


def _valid_features(before: int) -> nn.Module:
    layers: list[nn.Module] = [ChannelsLast()]
    for width in (16, 32):
        layers += [nn.Conv2d(before, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU(), nn.MaxPool2d(2)]
        before = width
    return nn.Sequential(*layers, FlattenChannelsLast())


def _as_in_keras(layer: nn.Module) -> None:
    if isinstance(layer, (nn.Linear, nn.Conv2d)):
        assert layer.bias is not None
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)


class Pixels(nn.Module):
    """From the centered and scaled images that the package gives to an encoder back to pixels from 0 to ``top``."""

    mean: Tensor

    def __init__(self, images: Any, top: float) -> None:
        super().__init__()
        self.scale = float(images.var(0, dtype="float64").mean() ** 0.5) * top / 255
        self.register_buffer("mean", torch.tensor(images.mean(0, dtype="float64") * top / 255).float())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.mean


def reading_pixels(network: Network, images: Any, top: float) -> VariantNetwork:
    """Return the network behind ``Pixels``."""
    features = nn.Sequential(Pixels(images, top), network.features)
    return VariantNetwork(features, [network.get_submodule(name) for name in network.hidden], network.out)


def trained(network: Network, weights: dict[str, Tensor]) -> VariantNetwork:
    """Return a network like this one, with these weights."""
    network.load_state_dict(weights)
    return VariantNetwork(network.features, [network.get_submodule(name) for name in network.hidden], network.out)
