"""Deep-learning projection: a network distilled from the embedding of a teacher, t-SNE or UMAP."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from dre.baselines import sklearn_api
from dre.baselines.sklearn_api import Array, check_finite, vectors
from dre.baselines.tsne import OpenTSNE
from dre.baselines.umap import UMAP
from dre.data.rows import HostRows, float64_pieces
from dre.data.scaling import ScaledRows, Scaling
from dre.data.validation import check_seed
from dre.model.fitted import embed, to_model_rows
from dre.notation import unknown
from dre.optimizer import AdamState, Optimizer
from dre.progress.display import progress_bar
from dre.runtime import IsolatedRNG, full_float32, resolve_device

TEACHERS: dict[str, Any] = {"tsne": OpenTSNE, "umap": UMAP}
ADAM = Optimizer(1e-3, eps=1e-7, policy="constant")
WIDTHS = (256, 512, 256)
VALIDATION = 0.05  # share of the rows that is held out for early stopping
MIN_DELTA = 1e-5  # smallest fall of the validation error that counts


class DLProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep-learning projection: three dense layers that regress the embedding of a teacher.

    Layers of 256, 512 and 256 ReLU units and two sigmoid units learn the teacher's embedding, scaled to the unit square, with
    the mean squared error and Adam. Training stops when the validation error has not fallen for ``patience`` epochs, and keeps
    the weights of the best epoch. All of this is as published. The embeddings of training and new rows are in the unit square.

    Parameters
    ----------
    teacher : {"tsne", "umap"} or estimator, default="tsne"
        openTSNE or UMAP with their defaults, or an estimator whose ``fit_transform`` returns two columns.
    teacher_rows : int or None, default=None
        Number of random rows that the teacher embeds and the network is trained on. None: all. The authors used 1,000 to
        9,000.
    epochs : int, default=200
        Maximum number of epochs.
    batch_size : int, default=32
        Rows of a batch.
    patience : int, default=10
        Epochs without a lower validation error before training stops.
    device : str, default="auto"
        As in ``dre.DRE``; the teachers compute on the CPU.
    random_state : int, RandomState or None, default=None
        Seed.
    verbose : bool or None, default=None
        Whether to show a progress bar. None: in a terminal or a notebook.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The network's embedding of the training rows, float32.
    row_shape_ : tuple of int
        Shape of one training row.
    teacher_ : estimator
        The fitted teacher.
    teacher_indices_ : ndarray of shape (n_teacher_rows,)
        Indices of the rows that the teacher embedded.
    teacher_embedding_ : ndarray of shape (n_teacher_rows, 2)
        The teacher's embedding, scaled to the unit square.
    network_ : torch.nn.Module
        The trained network.
    history_ : list of dict
        One record per epoch.

    References
    ----------
    M. Espadoto, N. S. T. Hirata, A. C. Telea: Deep learning multidimensional projections. Information Visualization 19 (2020).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dre.baselines.spectral import PCA
    >>> X = load_digits().images
    >>> model = DLProjection(PCA(), epochs=5, random_state=0).fit(X[:100])
    >>> model.transform(X[100:105]).shape
    (5, 2)
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
        """Fit the teacher and the network to X: vectors (n, d), or images, which are flattened."""
        distillation = Distillation(self.epochs, self.batch_size, self.patience)
        rows = vectors(self, X, fitting=True)
        device, seed = resolve_device(self.device), check_seed(self.random_state)
        teacher, indices = self._teacher(seed), self._teacher_indices(len(rows), seed)
        target = to_unit_square(teacher.fit_transform(rows[indices]))
        scaling = max_abs_scaling(rows)
        x = to_model_rows(rows, scaling, device)
        with IsolatedRNG(seed, device)():
            network = build_network(rows.shape[1]).to(device)
        with progress_bar("DL projection", self.epochs, verbose=self.verbose) as tick:
            y = torch.from_numpy(target).to(device)
            history = distillation.train(network, x.take(torch.from_numpy(indices)), y, seed, tick)
        self.teacher_, self.teacher_indices_, self.teacher_embedding_ = teacher, indices, target
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
        return TEACHERS[self.teacher](random_state=None if self.random_state is None else seed)  # unseeded, UMAP uses all cores

    def _teacher_indices(self, n: int, seed: int) -> Array:
        """Return the indices of the rows that the teacher embeds, in ascending order."""
        count = n if self.teacher_rows is None else self.teacher_rows
        if not isinstance(count, (int, np.integer)) or not 2 <= count <= n:
            raise ValueError(f"teacher_rows={count!r}: must be an integer from 2 to {n}, the rows of X, or None for all")
        return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))

    def transform(self, X: Any) -> Array:
        """Embed the rows of X, float32, in the unit square."""
        rows = vectors(self, X, fitting=False)
        device = next(self.network_.parameters()).device
        return embed(self.network_, ScaledRows(HostRows(rows), self._scaling, device))

    fit_transform = sklearn_api.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


@dataclass(frozen=True)
class Distillation:
    """Supervised training of the network with early stopping."""

    epochs: int
    batch_size: int
    patience: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}={value!r}: must be an integer of at least 1")

    def train(
        self, network: nn.Module, x: Tensor, y: Tensor, seed: int, tick: Callable[[], object] = lambda: None
    ) -> list[dict[str, Any]]:
        """Train the network on rows x (n, d) and targets y (n, 2), in place, and restore the weights of the best epoch.

        Returns one record per epoch; ``tick`` is called after each.
        """
        generator = torch.Generator().manual_seed(seed)
        held_out = max(1, round(VALIDATION * len(x)))
        order = torch.randperm(len(x), generator=generator)
        val_ids, train_ids = order[:held_out].to(x.device), order[held_out:]
        steps = self.epochs * math.ceil(len(train_ids) / self.batch_size)
        adam = ADAM.start(network.parameters(), steps)
        history: list[dict[str, Any]] = []
        best, best_epoch, weights = math.inf, 0, network.state_dict()
        with full_float32():
            for epoch in range(self.epochs):
                began = time.perf_counter()
                shuffled = train_ids[torch.randperm(len(train_ids), generator=generator)].to(x.device)
                loss = self._epoch(network, adam, x[shuffled], y[shuffled])
                with torch.no_grad():
                    validation = float(mse_loss(network(x[val_ids]), y[val_ids]))
                history.append({"epoch": epoch, "loss": loss, "validation": validation, "seconds": time.perf_counter() - began})
                for error in (loss, validation):
                    check_finite(error, epoch, name="the error of the projection", remedy="divide X by its largest value")
                tick()
                if validation < best - MIN_DELTA:
                    best, best_epoch, weights = validation, epoch, copy.deepcopy(network.state_dict())
                elif epoch - best_epoch >= self.patience:
                    break
        network.load_state_dict(weights)
        return history

    def _epoch(self, network: nn.Module, adam: AdamState, x: Tensor, y: Tensor) -> float:
        """Train on shuffled rows once; return their mean error."""
        total = torch.zeros((), device=x.device)
        for rows, target in zip(x.split(self.batch_size), y.split(self.batch_size), strict=True):
            loss = mse_loss(network(rows), target)
            network.zero_grad(set_to_none=True)
            loss.backward()
            adam.update()
            total += loss.detach() * len(rows)
        return float(total) / len(x)


def build_network(features: int) -> nn.Sequential:
    """Return the network with the paper's initialization: He's weights, and biases just above zero."""
    widths = (features, *WIDTHS)
    hidden = [layer for before, after in pairwise(widths) for layer in (nn.Linear(before, after), nn.ReLU())]
    network = nn.Sequential(*hidden, nn.Linear(WIDTHS[-1], 2), nn.Sigmoid())
    for layer in network:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.constant_(layer.bias, 1e-4)
    return network


def max_abs_scaling(rows: Array) -> Scaling:
    """Center rows and scale them to [-1, 1]. The authors scale to [0, 1]; biases make up for the center."""
    mean = Scaling.fit(rows).mean
    largest = max(float((part - mean).abs().max()) for part in float64_pieces(rows))
    return Scaling(mean, largest if largest > 0 else 1.0)


def to_unit_square(embedding: Any) -> Array:
    """Scale each axis of an embedding to [0, 1], float32; a constant axis becomes 0.

    >>> to_unit_square([[2, 5], [4, 5], [3, 5]]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    embedding = np.asarray(embedding, dtype=np.float64)
    if embedding.ndim != 2 or embedding.shape[1] != 2 or not np.isfinite(embedding).all():
        raise ValueError(f"the teacher returned an array of shape {embedding.shape}: expected finite numbers in two columns")
    low, width = embedding.min(0), np.ptp(embedding, axis=0)
    return np.asarray((embedding - low) / np.where(width > 0, width, 1), dtype=np.float32)
