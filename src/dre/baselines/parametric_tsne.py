"""Parametric t-SNE: a network pre-trained as a stack of RBMs and fine-tuned with t-SNE's loss (van der Maaten 2009)."""

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
from dre.baselines import sklearn_api
from dre.baselines.rbm import RBM, ContrastiveDivergence
from dre.baselines.sklearn_api import check_shape, default_epochs
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
from dre.observe.progress import Progress
from dre.observe.stopping import Interrupt
from dre.optimizer import Optimizer
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule, Stage
from dre.progress.display import progress_bar, shown
from dre.runtime import IsolatedRNG, Runtime
from dre.training.loop import train

COMPONENTS = 2
EPOCHS = 100  # of the fine-tuning
MIN_STEPS, MAX_STEPS = 1_000, 3_000  # bounds of the default


class ParametricTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sigmoid layers, pre-trained as restricted Boltzmann machines and fine-tuned with KL(P‖Q) in fixed batches.

    The layers, the linear hidden units of the last machine, contrastive divergence, batches of 5,000 and α = 1 are those of
    the paper. Adam replaces its conjugate gradients.

    Parameters
    ----------
    layers : sequence of int, default=(500, 500, 2000)
        Widths of the sigmoid layers. A linear layer of two units follows.
    perplexity : float, default=30
        Perplexity of the affinities within a batch.
    pretraining_epochs : int, default=30
        Epochs of contrastive divergence for each layer; 0 starts from random weights.
    epochs : int or None, default=None
        Epochs of the fine-tuning. None: 100, more if the rows make few batches, fewer if they make many.
    batch_size : int, default=5000
        Rows of a batch of the fine-tuning.
    learning_rate : float, default=1e-2
        Peak learning rate of the fine-tuning.
    device : str, default="auto"
        As in ``dre.DRE``.
    random_state : int, RandomState or None, default=None
        Seed.
    verbose : bool or None, default=None
        Whether to show progress bars. None: in a terminal or a notebook.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    encoder_ : torch.nn.Module
        The trained network.
    machines_ : list of RBM
        The pre-trained machines; ``machine.errors`` has their reconstruction errors.
    history_ : list of dict
        One record per epoch of the fine-tuning.

    References
    ----------
    L. van der Maaten: Learning a parametric embedding by preserving local structure. AISTATS 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:200]
    >>> model = ParametricTSNE((20, 20, 40), pretraining_epochs=2, epochs=20, random_state=0).fit(X)
    >>> model.transform(X[:5]).shape
    (5, 2)
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
        """Train on X: vectors (n, d), or images, which are flattened."""
        self._check()
        with shown(self.verbose):
            return self._fit(check_rows(self, X, fitting=True))

    def _fit(self, X: Any) -> Self:
        # Float32 throughout: nearly saturated sigmoids need the precision.
        runtime, seed, scaling = Runtime.on(self.device, "float32"), check_seed(self.random_state), Scaling.fit(X)
        rows = to_model_rows(X, scaling, runtime.device)
        min_max = MinMax.fit(rows, scaling).to(runtime.device)
        machines = self._pretrain(min_max(rows.read(0, rows.shape[0])), runtime.generator(seed))
        with IsolatedRNG(seed, runtime.device)():
            encoder = runtime.place(unroll(min_max, [min_max.size, *self.layers, COMPONENTS], machines))
        recipe = self._recipe(encoder, rows.shape[0])
        history = History()
        events = train(encoder, rows, recipe, n_components=COMPONENTS, runtime=runtime, seed=seed)
        observers: list[Observer] = [] if self.verbose is False else [Progress()]
        interrupt = Interrupt()
        watch(events, [history, interrupt, *observers])
        self._map = FittedMap(encoder.eval(), recipe, scaling, COMPONENTS, [*history.stages], history.records)
        self.encoder_, self.machines_, self.history_ = encoder, machines, history.records
        self.embedding_ = embed(encoder, rows)
        interrupt.warn()
        return self

    def _check(self) -> None:
        widths = list(self.layers) if isinstance(self.layers, Sequence) else []
        if not widths or not all(isinstance(width, (int, np.integer)) and width > 0 for width in widths):
            raise ValueError(f"layers={self.layers!r}: expected the widths of the hidden layers, such as (500, 500, 2000)")
        if check_number("pretraining_epochs", self.pretraining_epochs, integer=True) < 0:
            raise ValueError(f"pretraining_epochs={self.pretraining_epochs}: must be 0 or more; 0 skips the pre-training")

    def _pretrain(self, v: Tensor, generator: torch.Generator) -> list[RBM]:
        """Train one machine per layer, each on the hidden units of the one below."""
        if not self.pretraining_epochs:
            return []
        plan = ContrastiveDivergence(self.pretraining_epochs)
        machines: list[RBM] = []
        steps = plan.epochs * plan.steps(len(v)) * (len(self.layers) + 1)
        with progress_bar("pre-training", steps, verbose=self.verbose) as tick:
            for width in (*self.layers, COMPONENTS):
                machine = RBM.initialize(v.shape[1], width, generator, linear=len(machines) == len(self.layers))
                machines.append(plan.train(machine, v, generator, tick))
                v = machines[-1].up(v)
        return machines

    def _recipe(self, encoder: nn.Module, n: int) -> Recipe:
        batches = Fixed(self.batch_size)
        epochs = self.epochs
        if epochs is None:
            epochs = default_epochs(batches.steps(n), epochs=EPOCHS, min_steps=MIN_STEPS, max_steps=MAX_STEPS)
        stage = Stage("x", Gaussian(self.perplexity, scope="batch"), KL(), epochs)
        recipe = Recipe(Schedule(stage), encoder, batches, Optimizer(self.learning_rate), precision="float32")
        return recipe.clamp_to(n)

    def transform(self, X: Any) -> Array:
        """Embed the rows of X, float32."""
        check_is_fitted(self)
        check_shape(self._map.shape, X)
        return self._map.embed(check_rows(self, X, fitting=False))

    fit_transform = sklearn_api.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


class MinMax(nn.Module):
    """Flatten rows and scale them to [0, 1], the range of an RBM's visible units.

    The rows come centered and divided by one number, as ``Scaling`` leaves them.
    """

    factor: Tensor
    offset: Tensor

    def __init__(self, factor: Tensor, offset: Tensor) -> None:
        super().__init__()
        self.register_buffer("factor", factor)
        self.register_buffer("offset", offset)

    @classmethod
    def fit(cls, rows: Rows, scaling: Scaling) -> MinMax:
        """Map the smallest value to 0 and the largest to 1: over all pixels of images, or over each column of vectors."""
        mean = channels_first((scaling.mean / scaling.scale)[None], image_layout(scaling.shape)).flatten()
        n, step = rows.shape[0], chunk_rows(rows.shape[1:])
        ends = [rows.read(start, min(n, start + step)).flatten(1).aminmax(dim=0) for start in range(0, n, step)]
        low = torch.stack([part.min.cpu() for part in ends]).amin(0) + mean
        high = torch.stack([part.max.cpu() for part in ends]).amax(0) + mean
        if len(rows.shape) > 2:
            low, high = low.amin(), high.amax()
        width = (high - low).masked_fill(high - low <= 0, 1.0)  # a constant column becomes 0
        return cls((1 / width).float(), ((mean - low) / width).float())

    @property
    def size(self) -> int:
        return len(self.offset)

    def forward(self, z: Tensor) -> Tensor:
        return z.flatten(1) * self.factor + self.offset


def unroll(min_max: MinMax, widths: list[int], machines: list[RBM]) -> Network:
    """Return the machines as one feed-forward network; without machines its weights are random."""
    layers = [nn.Linear(before, after) for before, after in pairwise(widths)]
    with torch.no_grad():
        for layer, machine in zip(layers, machines, strict=bool(machines)):
            layer.weight.copy_(machine.weight.T)
            layer.bias.copy_(machine.hidden_bias)
    return Network(min_max, [nn.Sequential(layer, nn.Sigmoid()) for layer in layers[:-1]], layers[-1])
