"""Parametric t-SNE: a stack of Boltzmann machines unrolled into a network, then t-SNE's loss (van der Maaten 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dre.affinity.gaussian import Gaussian
from dre.baselines import contract
from dre.baselines.bar import bar
from dre.baselines.rbm import RBM, ContrastiveDivergence
from dre.baselines.vectors import check_shape
from dre.batches import Fixed
from dre.data.image_layout import channels_first, image_layout
from dre.data.rows import Rows
from dre.data.scaling import Scaling
from dre.data.validation import check_number, check_rows, check_seed
from dre.encoder.forward import chunk_rows
from dre.encoder.network import Network
from dre.loss.kl import KL
from dre.model.fitted import Array, FittedMap, embed, to_model_rows
from dre.observe import Observer, watch
from dre.observe.history import History
from dre.observe.progress import Progress, is_interactive
from dre.observe.stopping import Interrupt
from dre.optimizer import Optimizer
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule, Stage
from dre.runtime import IsolatedRNG, Runtime
from dre.training.loop import train

COMPONENTS = 2
EPOCHS = 100  # of the fine-tuning
LEAST, MOST = 1_000, 3_000  # steps of it: small data make few batches, and large data need no more of them


class ParametricTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A network of sigmoid layers, pre-trained layer by layer without labels, fine-tuned with KL(P‖Q) in fixed batches.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:200]
    >>> model = ParametricTSNE((20, 20, 40), pretraining_epochs=2, epochs=20, random_state=0).fit(X)
    >>> model.transform(X[:5]).shape
    (5, 2)

    As published: the layers, one Boltzmann machine each with that of the map having linear hidden units, contrastive
    divergence, P and Q inside batches of 5,000, α = 1. Not as published: Adam takes the place of conjugate gradients.

    Parameters
    ----------
    layers : sequence of int
        Widths of the sigmoid layers; the map follows on the last.
    perplexity : float
        Inside a batch.
    pretraining_epochs : int
        Epochs of contrastive divergence for each layer; 0 starts from random weights.
    epochs, batch_size, learning_rate
        Of the fine-tuning; None as the number of epochs takes 100, more where the rows make few batches, fewer where
        they make many.
    device, random_state, verbose
        As in ``dre.DRE``.

    Attributes
    ----------
    embedding_ : the map of the rows that were fitted, float32 (n, 2)
    encoder_ : the trained network
    machines_ : the Boltzmann machines that it started from, and their errors in ``machine.errors``
    history_ : one record per epoch of the fine-tuning, as plain dicts

    L. van der Maaten: Learning a parametric embedding by preserving local structure. AISTATS 2009.
    """

    embeds_new_rows = True
    _n_features_out = COMPONENTS

    def __init__(
        self,
        layers: Sequence[int] = (500, 500, 2000),
        *,
        perplexity: float = 30,
        pretraining_epochs: int = 30,
        epochs: int | None = None,
        batch_size: int = 5000,
        learning_rate: float = 1e-2,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.layers = layers
        self.perplexity = perplexity
        self.pretraining_epochs = pretraining_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of X: (n, d), or images, which are flattened."""
        self._check()
        return self._fit(check_rows(self, X, fitting=True))

    def _fit(self, X: Any) -> Self:
        # In float32 throughout: sigmoids that are nearly saturated have no digits to spare.
        runtime, seed, scaling = Runtime.on(self.device, "float32"), check_seed(self.random_state), Scaling.fit(X)
        rows = to_model_rows(X, scaling, runtime.device)
        unit = Unit.of(rows, scaling).to(runtime.device)
        machines = self._machines(unit(rows.read(0, rows.shape[0])), runtime.generator(seed))
        with IsolatedRNG(seed, runtime.device)():
            encoder = runtime.place(unrolled(unit, [unit.size, *self.layers, COMPONENTS], machines))
        recipe = self._recipe(encoder, rows.shape[0])
        history = History()
        events = train(encoder, rows, recipe, n_components=COMPONENTS, runtime=runtime, seed=seed)
        watch(events, [history, Interrupt(), *self._shown()])
        self._map = FittedMap(encoder.eval(), recipe, scaling, COMPONENTS, [*history.stages], history.records)
        self.encoder_, self.machines_, self.history_ = encoder, machines, history.records
        self.embedding_ = embed(encoder, rows)
        return self

    def _check(self) -> None:
        widths = list(self.layers) if isinstance(self.layers, Sequence) else []
        if not widths or not all(isinstance(width, (int, np.integer)) and width > 0 for width in widths):
            raise ValueError(f"layers={self.layers!r}: expected the width of each hidden layer, such as (500, 500, 2000)")
        if check_number("pretraining_epochs", self.pretraining_epochs, whole=True) < 0:
            raise ValueError(f"pretraining_epochs={self.pretraining_epochs}: must be a number of epochs, 0 for none")

    def _machines(self, v: Tensor, generator: torch.Generator) -> list[RBM]:
        """One machine per layer, each trained on what the one below makes of the rows."""
        if not self.pretraining_epochs:
            return []
        plan = ContrastiveDivergence(self.pretraining_epochs)
        machines: list[RBM] = []
        steps = plan.epochs * plan.steps(len(v)) * (len(self.layers) + 1)
        with bar("pre-training", steps, self.verbose) as tick:
            for width in (*self.layers, COMPONENTS):
                blank = RBM.blank(v.shape[1], width, generator, linear=len(machines) == len(self.layers))
                machines.append(plan.train(blank, v, generator, tick))
                v = machines[-1].up(v)
        return machines

    def _recipe(self, encoder: nn.Module, n: int) -> Recipe:
        batches = Fixed(self.batch_size)
        epochs = _enough(batches.steps(n)) if self.epochs is None else self.epochs
        stage = Stage("x", Gaussian(self.perplexity, scope="batch"), KL(), epochs)
        recipe = Recipe(Schedule(stage), encoder, batches, Optimizer(self.learning_rate), precision="float32")
        return recipe.clamp_to(n)

    def _shown(self) -> list[Observer]:
        return [Progress()] if self.verbose or (self.verbose is None and is_interactive()) else []

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32."""
        check_is_fitted(self)
        check_shape(self._map.shape, X)
        return self._map.embed(check_rows(self, X, fitting=False))

    fit_transform = contract.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


class Unit(nn.Module):
    """Rows that come centred and scaled, flattened and brought into [0, 1], where a Boltzmann machine's units live."""

    factor: Tensor
    offset: Tensor

    def __init__(self, factor: Tensor, offset: Tensor) -> None:
        super().__init__()
        self.register_buffer("factor", factor)
        self.register_buffer("offset", offset)

    @classmethod
    def of(cls, rows: Rows, scaling: Scaling) -> Unit:
        """The smallest value becomes 0 and the largest 1: of all pixels, which have one unit, or of each column of vectors."""
        mean = channels_first(torch.from_numpy(scaling.mean / scaling.scale)[None], image_layout(scaling.mean.shape)).flatten()
        n, step = rows.shape[0], chunk_rows(rows.shape[1:])
        ends = [rows.read(start, min(n, start + step)).flatten(1).aminmax(dim=0) for start in range(0, n, step)]
        low = torch.stack([part.min.cpu() for part in ends]).amin(0) + mean
        high = torch.stack([part.max.cpu() for part in ends]).amax(0) + mean
        if len(rows.shape) > 2:
            low, high = low.amin(), high.amax()
        width = (high - low).masked_fill(high - low <= 0, 1.0)  # a column that never changes is 0
        return cls((1 / width).float(), ((mean - low) / width).float())

    @property
    def size(self) -> int:
        return len(self.offset)

    def forward(self, z: Tensor) -> Tensor:
        return z.flatten(1) * self.factor + self.offset


def unrolled(unit: Unit, widths: list[int], machines: list[RBM]) -> Network:
    """The machines as one feed-forward network, sigmoid layers and a linear map; without machines its weights are random."""
    layers = [nn.Linear(before, after) for before, after in pairwise(widths)]
    with torch.no_grad():
        for layer, machine in zip(layers, machines, strict=bool(machines)):
            layer.weight.copy_(machine.weight.T)
            layer.bias.copy_(machine.hidden)
    return Network(unit, [nn.Sequential(layer, nn.Sigmoid()) for layer in layers[:-1]], layers[-1])


def _enough(parts: int) -> int:
    """Epochs of so many batches.

    >>> _enough(2), _enough(12), _enough(60)
    (500, 100, 50)
    """
    return min(max(EPOCHS, LEAST // parts), MOST // parts) or 1
