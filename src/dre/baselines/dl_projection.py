"""Deep-learning projection: a network that learns by heart where a teacher, t-SNE or UMAP, has placed the rows."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from dre.baselines import contract
from dre.baselines.bar import Tick, bar
from dre.baselines.diverged import check_error
from dre.baselines.open_tsne import OpenTSNE
from dre.baselines.umap import UMAP
from dre.baselines.vectors import Array, vectors
from dre.data.rows import ArrayRows, chunks
from dre.data.scaling import Scaling
from dre.data.validation import check_seed
from dre.encoder.forward import chunk_rows
from dre.model.fitted import SLICES, embed
from dre.notation import unknown
from dre.optimizer import AdamState, Optimizer
from dre.runtime import IsolatedRNG, full_float32, resolve_device

TEACHERS: dict[str, Any] = {"tsne": OpenTSNE, "umap": UMAP}
ADAM = Optimizer(1e-3, eps=1e-7, policy="constant")
WIDTHS = (256, 512, 256)
ASIDE = 0.05  # of the rows, which tell when to stop and are not learned from
WORTH = 1e-5  # what the error on these must fall by to count as better


class DLProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep-learning projection, written in torch: three dense layers that regress the map of a teacher.

    >>> from sklearn.datasets import load_digits
    >>> from dre.baselines.pca import PCA
    >>> X = load_digits().images
    >>> model = DLProjection(PCA(), epochs=5, random_state=0).fit(X[:100])
    >>> model.transform(X[100:105]).shape
    (5, 2)

    The teacher's map is scaled to the unit square and learned by dense layers of 256, 512 and 256 ReLU units and 2 sigmoid
    units, with the mean squared error and Adam, in batches of 32, until the error of a part that is set aside has not fallen
    for ``patience`` epochs; the weights of the best epoch are kept, all as published. The map, of new rows too, lies in the
    unit square.

    Parameters
    ----------
    teacher : "tsne", "umap" or an estimator
        openTSNE or UMAP with their defaults, or anything with ``fit_transform`` that gives two columns.
    teacher_rows : int, optional
        How many rows, drawn at random, the teacher places and the network learns from; None: all. The authors taught 1,000
        to 9,000.
    epochs, batch_size, patience
        Of the training: at most so many epochs.
    device, random_state, verbose
        As in ``dre.DRE``; the teachers compute on the CPU.

    Attributes
    ----------
    embedding_ : the network's map of all rows that were fitted, float32 (n, 2)
    teacher_ : the fitted teacher
    taught_, teacher_embedding_ : the rows that it placed, and where, in the unit square
    network_ : the trained network
    history_ : one record per epoch, as plain dicts

    M. Espadoto, N. S. T. Hirata, A. C. Telea: Deep learning multidimensional projections. Information Visualization 19 (2020).
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(
        self,
        teacher: Any = "tsne",
        *,
        teacher_rows: int | None = None,
        epochs: int = 200,
        batch_size: int = 32,
        patience: int = 10,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.teacher = teacher
        self.teacher_rows = teacher_rows
        self.epochs = epochs
        self.batch_size = batch_size
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Let the teacher place the rows of X, (n, d) or images, which are flattened, and learn where."""
        lesson = Lesson(self.epochs, self.batch_size, self.patience)
        rows = vectors(self, X, fitting=True)
        device, seed = resolve_device(self.device), check_seed(self.random_state)
        teacher, taught = self._teacher(seed), self._taught(len(rows), seed)
        target = in_unit_square(teacher.fit_transform(rows[taught]))
        scaling = within_one(rows)
        x = ArrayRows(scaling.apply(rows), device)
        with IsolatedRNG(seed, device)():
            network = built(rows.shape[1]).to(device)
        with bar("DL projection", self.epochs, self.verbose) as tick:
            places = torch.from_numpy(target).to(device)
            history = lesson.learn(network, x.take(torch.from_numpy(taught)), places, seed, tick)
        self.teacher_, self.taught_, self.teacher_embedding_ = teacher, taught, target
        self.network_, self.history_, self._scaling = network.eval(), history, scaling
        self.embedding_: Array = embed(network, x)
        return self

    def _teacher(self, seed: int) -> Any:
        if not isinstance(self.teacher, str):
            if not hasattr(self.teacher, "fit_transform"):
                raise TypeError(f"teacher={self.teacher!r}: expected 'tsne', 'umap' or an estimator with fit_transform")
            return clone(self.teacher)
        if self.teacher not in TEACHERS:
            raise ValueError(unknown("teacher", self.teacher, list(TEACHERS)))
        return TEACHERS[self.teacher](random_state=None if self.random_state is None else seed)  # UMAP: without, on all cores

    def _taught(self, n: int, seed: int) -> Array:
        """The rows that are taught, in the order that they have."""
        count = n if self.teacher_rows is None else self.teacher_rows
        if not isinstance(count, (int, np.integer)) or not 2 <= count <= n:
            raise ValueError(f"teacher_rows={count!r}: must be a whole number from 2 to the {n} rows of X, or None for all")
        return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32, in the unit square."""
        rows = vectors(self, X, fitting=False)
        device = next(self.network_.parameters()).device
        step = SLICES * chunk_rows(rows.shape[1:])  # whole chunks of the forward pass, so that the bits are those of the fit
        slices = (rows[start : start + step] for start in range(0, len(rows), step))
        return np.concatenate([embed(self.network_, ArrayRows(self._scaling.apply(part), device)) for part in slices])

    fit_transform = contract.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


@dataclass(frozen=True)
class Lesson:
    """How the network is taught."""

    epochs: int
    batch_size: int
    patience: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}={value!r}: must be a whole number from 1 up")

    def learn(self, network: nn.Module, x: Tensor, y: Tensor, seed: int, tick: Tick = lambda: None) -> list[dict[str, Any]]:
        """Teach rows x (n, d) their places y (n, 2). The network has the weights of its best epoch at the end."""
        generator = torch.Generator().manual_seed(seed)
        aside = max(1, round(ASIDE * len(x)))
        order = torch.randperm(len(x), generator=generator)
        asked, learned = order[:aside].to(x.device), order[aside:]
        steps = self.epochs * math.ceil(len(learned) / self.batch_size)
        descent = ADAM.start(network.parameters(), ADAM.lr, steps)
        history: list[dict[str, Any]] = []
        best, best_epoch, weights = math.inf, 0, network.state_dict()
        with full_float32():
            for epoch in range(self.epochs):
                began = time.perf_counter()
                shuffled = learned[torch.randperm(len(learned), generator=generator)].to(x.device)
                loss = self._epoch(network, descent, x[shuffled], y[shuffled])
                with torch.no_grad():
                    validation = float(mse_loss(network(x[asked]), y[asked]))
                history.append({"epoch": epoch, "loss": loss, "validation": validation, "seconds": time.perf_counter() - began})
                for error in (loss, validation):
                    check_error(error, epoch, of="the error of the projection", remedy="divide X by its largest value")
                tick()
                if validation < best - WORTH:
                    best, best_epoch, weights = validation, epoch, copy.deepcopy(network.state_dict())
                elif epoch - best_epoch >= self.patience:
                    break
        network.load_state_dict(weights)
        return history

    def _epoch(self, network: nn.Module, descent: AdamState, x: Tensor, y: Tensor) -> float:
        """One pass over rows that are shuffled already; the mean error of the rows as they came."""
        total = torch.zeros((), device=x.device)
        for rows, places in zip(x.split(self.batch_size), y.split(self.batch_size), strict=True):
            loss = mse_loss(network(rows), places)
            network.zero_grad(set_to_none=True)
            loss.backward()
            descent.update()
            total += loss.detach() * len(rows)
        return float(total) / len(x)


def built(features: int) -> nn.Sequential:
    """The network for rows of so many values, with the initial weights of the paper: He's, and biases just above zero."""
    widths = (features, *WIDTHS)
    hidden = [layer for before, after in pairwise(widths) for layer in (nn.Linear(before, after), nn.ReLU())]
    network = nn.Sequential(*hidden, nn.Linear(WIDTHS[-1], 2), nn.Sigmoid())
    for layer in network:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.constant_(layer.bias, 1e-4)
    return network


def within_one(rows: Array) -> Scaling:
    """Rows centred, and scaled so that no value is beyond 1. (The authors' lie from 0 to 1; biases make up for the centre.)"""
    mean = Scaling.fit(rows).mean
    largest = max(float(np.abs(part - mean).max()) for part in chunks(rows))
    return Scaling(mean, largest if largest > 0 else 1.0)


def in_unit_square(places: Any) -> Array:
    """A map with each axis scaled to run from 0 to 1, float32; an axis on which nothing differs becomes 0.

    >>> in_unit_square([[2, 5], [4, 5], [3, 5]]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    places = np.asarray(places, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
        raise ValueError(f"the teacher gave an array of the shape {places.shape}: expected finite numbers in two columns")
    low, width = places.min(0), np.ptp(places, axis=0)
    return np.asarray((places - low) / np.where(width > 0, width, 1), dtype=np.float32)
