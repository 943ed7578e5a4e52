"""The autoencoder: an encoder and its mirrored decoder, trained to reconstruct the rows (Hinton and Salakhutdinov 2006)."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor, nn

from dre.baselines import sklearn_api
from dre.baselines.sklearn_api import check_finite, check_shape, default_epochs
from dre.batches import Shuffled
from dre.data.image_layout import image_layout, model_shape
from dre.data.rows import ArrayRows, HostRows, Rows, is_rows
from dre.data.scaling import ScaledRows, Scaling
from dre.data.validation import check_number, check_rows, check_seed, parse_param
from dre.encoder import ENCODERS, Encoder
from dre.encoder.forward import evaluating, outputs
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.encoder.network import ChannelsLast, FlattenChannelsLast
from dre.encoder.pca_front import PCAFront
from dre.model.fitted import Array, embed, to_model_rows
from dre.optimizer import Optimizer
from dre.progress.display import progress_bar
from dre.runtime import IsolatedRNG, Runtime

COMPONENTS = 2
EPOCHS = 40
MIN_STEPS, MAX_STEPS = 2_000, 10_000  # bounds of the default
POOLS = (nn.MaxPool2d, nn.AvgPool2d)
UNCHANGED = (nn.Identity, ChannelsLast)  # modules that leave a row as it is


class AutoEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An encoder and its mirror image, trained with the mean squared error, Adam and a one-cycle learning rate.

    Parameters
    ----------
    encoder : str, Encoder or None, default=None
        None: Model B for images and Model A for vectors, with batch norm in all layers, without which a network this deep
        learns slowly through a bottleneck of two units. An encoder with a PCA front is refused: it has no mirror image.
    epochs : int or None, default=None
        Epochs of training. None: 40, more if the rows make few batches, fewer if they make many.
    batch_size : int, default=250
        Rows of a batch.
    learning_rate : float, default=1e-3
        Peak of the one-cycle schedule.
    device : str, default="auto"
        As in ``dre.DRE``.
    random_state : int, RandomState or None, default=None
        Seed.
    verbose : bool or None, default=None
        Whether to show a progress bar. None: in a terminal or a notebook.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    encoder_, decoder_ : torch.nn.Module
        The trained networks.
    history_ : list of dict
        One record per epoch; ``loss`` is the mean squared error of the scaled rows.

    References
    ----------
    G. E. Hinton, R. R. Salakhutdinov: Reducing the dimensionality of data with neural networks. Science 313 (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:100]
    >>> model = AutoEncoder("mlp(32)", epochs=3, random_state=0).fit(X)
    >>> model.transform(X[:5]).shape, model.inverse_transform(model.embedding_).shape
    ((5, 2), (100, 8, 8))
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
        """Train on X: vectors (n, d), or images (n, h, w), (n, h, w, c), (n, c, h, w)."""
        if self.epochs is not None and check_number("epochs", self.epochs, integer=True) < 1:
            raise ValueError(f"epochs={self.epochs}: must be at least 1")
        X = check_rows(self, X, fitting=True)
        runtime, seed, scaling = Runtime.on(self.device), check_seed(self.random_state), Scaling.fit(X)
        rows = to_model_rows(X, scaling, runtime.device)
        random = IsolatedRNG(seed, runtime.device)
        with random():
            encoder = self._plan(rows.shape[1:]).build(rows.shape[1:], COMPONENTS)
            decoder = build_decoder(encoder, rows.shape[1:])
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
        """Train both networks in place; return one record per epoch."""
        parts = Shuffled(self.batch_size).steps(rows.shape[0])
        epochs = self.epochs or default_epochs(parts, epochs=EPOCHS, min_steps=MIN_STEPS, max_steps=MAX_STEPS)
        descent = Optimizer(self.learning_rate).start(both.parameters(), epochs * parts)
        history: list[dict[str, Any]] = []
        with progress_bar("autoencoder", epochs * parts, verbose=self.verbose) as tick:
            for epoch in range(epochs):
                began, total = time.perf_counter(), torch.zeros((), device=runtime.device)
                order = torch.randperm(rows.shape[0], generator=generator, device=generator.device)
                for ids in torch.tensor_split(order, parts):  # even parts: batch norm fails on a leftover of one row
                    total += backward(both, rows.take(ids), runtime)
                    descent.update()
                    tick()
                history.append({"epoch": epoch, "loss": float(total) / parts, "seconds": time.perf_counter() - began})
                check_finite(history[-1]["loss"], epoch, name="the reconstruction error", remedy="pass a lower learning_rate")
        return history

    def transform(self, X: Any) -> Array:
        """Embed the rows of X, float32."""
        check_is_fitted(self)
        shape = self._scaling.shape
        check_shape(shape, X)
        X = check_rows(self, X, fitting=False)
        rows = ScaledRows(X if is_rows(X) else HostRows(X), self._scaling, self._device)  # read chunk by chunk
        return embed(self.encoder_, rows)

    def inverse_transform(self, Y: Any) -> Array:
        """Decode points of the embedding into rows, float32, in the shape and unit of the training rows."""
        check_is_fitted(self)
        points = check_array(Y, dtype=np.float32, input_name="Y")
        if points.shape[1] != COMPONENTS:
            raise ValueError(f"Y has {points.shape[1]} columns: expected points of the embedding, (n, {COMPONENTS})")
        shape = self._scaling.shape
        flat = outputs(nn.Sequential(self.decoder_, nn.Flatten()), ArrayRows(torch.tensor(points), self._device))
        x: Array = flat.reshape(len(points), *model_shape(shape)).cpu().numpy()
        x = np.moveaxis(x, 1, -1) if image_layout(shape) == "hwc" else x.reshape(len(x), *shape)
        return np.asarray(x * self._scaling.scale.numpy() + self._scaling.mean.numpy(), dtype=np.float32)

    fit_transform = sklearn_api.fit_transform

    @property
    def _device(self) -> torch.device:
        return next(self.encoder_.parameters()).device

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


def backward(both: nn.Module, x: Tensor, runtime: Runtime) -> Tensor:
    """Return the reconstruction error of one batch, and leave its gradients in the parameters."""
    with runtime.autocast():
        reconstruction = both(x)
    loss = nn.functional.mse_loss(reconstruction.float(), x)
    both.zero_grad(set_to_none=True)
    loss.backward()
    return loss.detach()


class Layer(NamedTuple):
    """A leaf module, and the shapes of one row before and after it."""

    module: nn.Module
    before: torch.Size
    after: torch.Size


def build_decoder(encoder: nn.Module, shape: tuple[int, ...]) -> nn.Sequential:
    """Return the mirrored encoder: from the embedding back to rows of shape (d,) or (channels, height, width).

    >>> encoder = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 2))
    >>> build_decoder(encoder, (1, 3, 4))
    Sequential(
      (0): Linear(in_features=2, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=12, bias=True)
      (3): Unflatten(dim=1, unflattened_size=torch.Size([1, 3, 4]))
    )
    """
    if any(isinstance(module, PCAFront) for module in encoder.modules()):
        raise ValueError(
            "the encoder has a PCA front, which a decoder can't mirror: "
            "use an encoder without one, such as model-a, model-b or mlp"
        )
    layers = (layer for layer in reversed(layers_of(encoder, shape)) if not isinstance(layer.module, UNCHANGED))
    return nn.Sequential(*(_mirrored(layer) for layer in layers))


def layers_of(encoder: nn.Module, shape: tuple[int, ...]) -> list[Layer]:
    """Return the leaf modules that a row passes, in the order of the forward pass."""
    seen: list[Layer] = []

    def note(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append(Layer(module, given[0].shape[1:], out.shape[1:]))

    leaves = [module for module in encoder.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(note) for module in leaves]
    try:
        with evaluating(encoder), torch.no_grad():
            encoder(torch.zeros(1, *shape))
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _mirrored(layer: Layer) -> nn.Module:
    """Return a layer from the output shape to the input shape."""
    module, before, after = layer
    if isinstance(module, nn.Linear):
        return nn.Linear(module.out_features, module.in_features)
    if isinstance(module, nn.Flatten):
        return nn.Unflatten(1, before)
    if isinstance(module, FlattenChannelsLast):
        return _ToImages(before)
    if isinstance(module, POOLS):
        return nn.Upsample(size=tuple(before[1:]))
    if isinstance(module, nn.Conv2d):
        return _mirrored_convolution(module, before, after)
    if before != after:
        raise ValueError(
            f"a decoder can't mirror {module}, which maps {tuple(before)} to {tuple(after)}: "
            "use an encoder of dense layers, convolutions and pooling, such as model-a, model-b or mlp"
        )
    return _fresh(module)


class _ToImages(nn.Module):
    """Vectors to images (c, h, w), the inverse of ``FlattenChannelsLast``."""

    def __init__(self, shape: torch.Size) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        c, h, w = self.shape
        return x.view(-1, h, w, c).movedim(-1, 1)


def _mirrored_convolution(module: nn.Conv2d, before: torch.Size, after: torch.Size) -> nn.Module:
    sizes: Any = module.kernel_size
    same = nn.Conv2d(module.out_channels, module.in_channels, sizes, padding="same")
    return same if before[1:] == after[1:] else nn.Sequential(nn.Upsample(size=tuple(before[1:])), same)


def _fresh(module: nn.Module) -> nn.Module:
    """Return a copy of an activation or a norm with its parameters reset."""
    module = copy.deepcopy(module)
    reset = getattr(module, "reset_parameters", None)
    if reset is not None:
        reset()
    return module
