"""The auto-encoder: a network that must say a row again from its place in the map (Hinton and Salakhutdinov 2006)."""

from __future__ import annotations

import math
import time
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor, nn

from dre.baselines import contract
from dre.baselines.bar import bar
from dre.baselines.diverged import check_error
from dre.baselines.mirror import mirrored
from dre.baselines.vectors import check_shape
from dre.batches import Shuffled
from dre.data.image_layout import image_layout, model_shape
from dre.data.rows import ArrayRows, Rows, is_rows
from dre.data.scaling import Scaling
from dre.data.validation import check_number, check_rows, check_seed, parse_param
from dre.encoder import ENCODERS, Encoder
from dre.encoder.forward import chunk_rows, outputs
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.model.fitted import SLICES, Array, embed, to_model_rows
from dre.optimizer import Optimizer
from dre.runtime import IsolatedRNG, Runtime

COMPONENTS = 2
EPOCHS = 40
LEAST, MOST = 2_000, 10_000  # steps: small data make few batches, and large data need no more of them


class AutoEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An encoder of ours and its mirror image, trained to reproduce the rows: mean squared error, Adam, a one-cycle rate.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:100]
    >>> model = AutoEncoder("mlp(32)", epochs=3, random_state=0).fit(X)
    >>> model.transform(X[:5]).shape, model.inverse_transform(model.embedding_).shape
    ((5, 2), (100, 8, 8))

    Parameters
    ----------
    encoder : str or Encoder, optional
        None: Model B for images and Model A for vectors, with batch norm in all layers, without which a network this deep
        learns slowly through two numbers. One with a computed front has no mirror image, and is refused.
    epochs, batch_size, learning_rate
        Of the training. None as the number of epochs takes 40, more where the rows make few batches, fewer where they make
        many; the rate is the highest of its cycle.
    device, random_state, verbose
        As in ``dre.DRE``.

    Attributes
    ----------
    embedding_ : the map of the rows that were fitted, float32 (n, 2)
    encoder_, decoder_ : the trained networks
    history_ : one record per epoch, as plain dicts; the loss is the mean squared error of the scaled rows

    G. E. Hinton, R. R. Salakhutdinov: Reducing the dimensionality of data with neural networks. Science 313 (2006).
    """

    embeds_new_rows = True
    _n_features_out = COMPONENTS

    def __init__(
        self,
        encoder: str | Encoder | None = None,
        *,
        epochs: int | None = None,
        batch_size: int = 250,
        learning_rate: float = 1e-3,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.encoder = encoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of X: (n, d), or images (n, h, w), (n, h, w, c), (n, c, h, w)."""
        if self.epochs is not None and check_number("epochs", self.epochs, whole=True) < 1:
            raise ValueError(f"epochs={self.epochs}: must be at least 1")
        X = check_rows(self, X, fitting=True)
        runtime, seed, scaling = Runtime.on(self.device), check_seed(self.random_state), Scaling.fit(X)
        rows = to_model_rows(X, scaling, runtime.device)
        random = IsolatedRNG(seed, runtime.device)
        with random():
            encoder = self._plan(rows.shape[1:]).build(rows.shape[1:], COMPONENTS)
            decoder = mirrored(encoder, rows.shape[1:])
            both = runtime.place(nn.Sequential(encoder, decoder))
            history = self._train(both, rows, runtime, runtime.generator(seed))
        self.encoder_: nn.Module = encoder.eval()
        self.decoder_: nn.Module = decoder.eval()
        self.history_, self._scaling = history, scaling
        self.embedding_: Array = embed(encoder, rows)
        return self

    def _plan(self, shape: tuple[int, ...]) -> Encoder:
        plan: Encoder | None = parse_param("encoder", self.encoder, ENCODERS.parse, Encoder)
        if plan is None:
            plan = ModelB(norm=True) if len(shape) == 3 else ModelA(norm=True)
        return plan

    def _train(self, both: nn.Module, rows: Rows, runtime: Runtime, generator: torch.Generator) -> list[dict[str, Any]]:
        """Both networks, in place, and one record per epoch."""
        parts = Shuffled(self.batch_size).steps(rows.shape[0])
        epochs = _enough(parts) if self.epochs is None else self.epochs
        descent = Optimizer(self.learning_rate).start(both.parameters(), self.learning_rate, epochs * parts)
        history: list[dict[str, Any]] = []
        with bar("auto-encoder", epochs * parts, self.verbose) as tick:
            for epoch in range(epochs):
                began, total = time.perf_counter(), torch.zeros((), device=runtime.device)
                order = torch.randperm(rows.shape[0], generator=generator, device=generator.device)
                for ids in torch.tensor_split(order, parts):  # even parts: batch norm can't use a leftover of one row
                    total += learn(both, rows.take(ids), runtime)
                    descent.update()
                    tick()
                history.append({"epoch": epoch, "loss": float(total) / parts, "seconds": time.perf_counter() - began})
                check_error(history[-1]["loss"], epoch, of="the reconstruction error", remedy="pass a lower learning_rate")
        return history

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32."""
        check_is_fitted(self)
        shape = self._scaling.mean.shape
        check_shape(shape, X)
        X = check_rows(self, X, fitting=False)
        if is_rows(X):
            return embed(self.encoder_, to_model_rows(X, self._scaling, self._on))
        step = SLICES * chunk_rows(model_shape(shape))  # only a slice is dense float32 at a time
        slices = (to_model_rows(X[start : start + step], self._scaling, self._on) for start in range(0, X.shape[0], step))
        return np.concatenate([embed(self.encoder_, rows) for rows in slices])

    def inverse_transform(self, Y: Any) -> Array:
        """The row that each place of the map stands for, float32, in the shape and the unit of the rows that were fitted."""
        check_is_fitted(self)
        points = check_array(Y, dtype=np.float32, input_name="Y")
        if points.shape[1] != COMPONENTS:
            raise ValueError(f"Y has {points.shape[1]} columns: expected places in the map, (n, {COMPONENTS})")
        shape = self._scaling.mean.shape
        flat = outputs(nn.Sequential(self.decoder_, nn.Flatten()), ArrayRows(torch.tensor(points), self._on))
        x: Array = flat.reshape(len(points), *model_shape(shape)).cpu().numpy()
        x = np.moveaxis(x, 1, -1) if image_layout(shape) == "hwc" else x.reshape(len(x), *shape)
        return np.asarray(x * self._scaling.scale + self._scaling.mean, dtype=np.float32)

    fit_transform = contract.fit_transform

    @property
    def _on(self) -> torch.device:
        return next(self.encoder_.parameters()).device

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


def _enough(parts: int) -> int:
    """Epochs of so many batches.

    >>> _enough(4), _enough(240), _enough(1200)
    (500, 40, 9)
    """
    return min(max(EPOCHS, math.ceil(LEAST / parts)), math.ceil(MOST / parts))


def learn(both: nn.Module, x: Tensor, runtime: Runtime) -> Tensor:
    """Forward, error and backward for one batch; the gradients are left in the parameters."""
    with runtime.autocast():
        again = both(x)
    loss = nn.functional.mse_loss(again.float(), x)
    both.zero_grad(set_to_none=True)
    loss.backward()
    return loss.detach()
