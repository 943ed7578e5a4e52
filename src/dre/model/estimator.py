"""DRE, DeepTSNE and DeepUMAP: the method as scikit-learn estimators."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from dre.augment import Augment, CallableAugment, parse_augment
from dre.augment.augmentation import Augmenting
from dre.augment.noise import Noise
from dre.batches import BATCHES, Batches
from dre.data.image_layout import model_shape
from dre.data.scaling import Scaling
from dre.data.validation import check_rows, check_seed, number, read, two
from dre.encoder import ENCODERS, Encoder
from dre.model.archive import decode, encode, load_map, save_map, sound
from dre.model.fitted import Array, FittedMap, embed, mean_of_scaled, to_model_rows
from dre.observe import Observer, check_observers, watch
from dre.observe.history import History
from dre.observe.progress import Progress, Verbose, is_interactive
from dre.observe.stopping import Interrupt
from dre.optimizer import Optimizer
from dre.plan.overrides import Overrides, apply_overrides
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.schedule import Schedule
from dre.runtime import IsolatedRNG, Runtime, resolve_device
from dre.training.learner import uses_cached_front
from dre.training.loop import Weights, train


class DRE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep Recursive Embedding: a network that learns the map.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:200]
    >>> model = DRE("fast", random_state=0).fit(X)
    >>> model.transform(X[:5]).shape
    (5, 2)

    Parameters
    ----------
    recipe : str or Recipe
        ``"auto"``: the best map for these data on this device. ``"fast"``, ``"paper"``, ``"paper-tsne"``, ``"paper-umap"``,
        ``"deep-tsne"``, ``"deep-umap"``; or a ``Recipe``. What is passed below takes the place of the recipe's own.
    n_components : int
        Dimensions of the map.
    schedule : str or Schedule, optional
        The stages: ``"x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15"``.
    encoder : str, Encoder or nn.Module, optional
        ``"model-a"``, ``"model-b(norm=true)"``, ``"mlp(256, depth=3)"``; or a module of your own, which gets
        vectors as (b, d) and images as (b, c, h, w), centred and scaled.
    perplexity : float, optional
        Of all Gaussian affinities.
    umap : (n_neighbors, min_dist), optional
        Of all fuzzy affinities and cross entropies; either may be None.
    recursions : int, optional
        How often the neighbourhoods are computed again from the network's hidden layers.
    training : (batches, learning rate), optional
        ``(500, 1e-3)``; batches may be a text or an object, such as ``"edges(1024)"``, and the rate an ``Optimizer``; either
        may be None.
    augment : str, Augment or callable, optional
        Random changes to the rows in training: ``"noise(0.5)"``, ``"affine + flip"``, a function from a batch of scaled rows
        to one of the same shape; ``"none"`` turns off that of the recipe.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
    random_state : int, RandomState or None
        The same seed gives the same bits on the same CPU.
    verbose : bool or None
        None shows a progress bar where someone watches; True also says what was chosen.

    Attributes
    ----------
    embedding_ : the map of the rows that were fitted, float32 (n, n_components)
    history_ : one record per epoch, as plain dicts
    encoder_ : the trained network
    schedule_, recipe_ : what was to be carried out; ``stages_`` is shorter where the fit was ended early
    stages_ : the weights at the end of each stage
    """

    def __init__(
        self,
        recipe: str | Recipe = "auto",
        *,
        n_components: int = 2,
        schedule: str | Schedule | None = None,
        encoder: str | Encoder | nn.Module | None = None,
        perplexity: float | None = None,
        umap: tuple[int | None, float | None] | None = None,
        recursions: int | None = None,
        training: tuple[int | str | Batches | None, float | Optimizer | None] | None = None,
        augment: Augmenting = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.recipe = recipe
        self.n_components = n_components
        self.schedule = schedule
        self.encoder = encoder
        self.perplexity = perplexity
        self.umap = umap
        self.recursions = recursions
        self.training = training
        self.augment = augment
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, observers: Iterable[Observer] = ()) -> Self:
        """Learn the map of X: (n, d), or images (n, h, w), (n, h, w, c), (n, c, h, w).

        X may also be Rows, a stream such as ``dre.datasets.infimnist(70_000, 370_000)``: anything with ``shape``,
        ``read(start, stop)`` and ``take(ids)``. Batches and chunks are read from it as they are needed. Only the features that
        a stage takes its neighbours from are held whole, as float32 on the device; where its source is ``x``, that is X itself.
        What a computed front gives is held throughout, and up to 10,000 rows, or four for each of its components where that is
        more, are taken at once to find it. Beyond a million rows on a GPU, those of a part are taken by their ids.

        ``observers`` see every event of the run, and may end it: ``[EarlyStop(patience=20)]``.
        """
        with _all_or_nothing(self):
            return self._fit(check_rows(self, X, fitting=True), check_observers(observers))

    def _fit(self, X: Any, observers: Iterable[Observer]) -> Self:
        if not isinstance(self.n_components, (int, np.integer)) or self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r}: must be a whole number from 1 up")
        n_components = int(self.n_components)
        device = resolve_device(self.device)
        recipe, said = self._overrides()
        scaling = Scaling.of(X, device)
        n = X.shape[0]
        recipe = apply_overrides(recipe, DataSpec(n, model_shape(tuple(X.shape[1:])), device.type), said).clamp_to(n)
        rows = to_model_rows(X, scaling, device, held=not uses_cached_front(recipe.encoder, recipe.augment))
        runtime = Runtime.on(device, recipe.precision)
        seed = check_seed(self.random_state)
        encoder = runtime.place(_build(recipe.encoder, rows.shape[1:], n_components, IsolatedRNG(seed, device)))
        history = History()
        mean = mean_of_scaled(scaling)
        events = train(encoder, rows, recipe, n_components=n_components, runtime=runtime, seed=seed, mean=mean)
        watch(events, [history, Interrupt(), *self._default_observers(), *observers])
        self._map = FittedMap(encoder.eval(), recipe, scaling, n_components, [*history.stages], history.records)
        self._embedding = embed(encoder, rows)
        return self

    def transform(self, X: Any, *, stage: int | None = None) -> Array:
        """The place of each row in the map, float32; ``stage`` gives the map as it was after that stage.

        Rows are read chunk by chunk, and never held whole.
        """
        check_is_fitted(self)
        # scikit-learn would call an image's height its features
        if len(self._map.shape) > 1 or len(getattr(X, "shape", (0, 0))) > 2:
            self._map.check_shape(np.shape(X))
        return self._map.embed(check_rows(self, X, fitting=False), stage)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """``fit(X).transform(X)``, with the parameters of ``fit``."""
        return self.fit(X, y, **fit_params).embedding_

    def save(self, path: str | os.PathLike[str], *, stages: bool = True) -> None:
        """Write one safetensors file: weights and configuration, no training data and no embedding.

        ``stages=False`` leaves out the weights at the end of each stage but the last.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        about = {
            "class": type(self).__name__,
            "parameters": {name: encode(value) for name, value in self.get_params(deep=False).items()},
            "feature_names_in": None if names is None else list(names),
        }
        save_map(path, self._map, about, stages=stages)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, encoder: nn.Module | None = None, device: str | None = None) -> DRE:
        """Read a model that ``save`` wrote; one with a module of your own needs that module again, ``encoder=MyModule()``.

        ``device`` takes the place of the one that the model was made with.
        """
        from dre.model.estimator import DeepTSNE, DeepUMAP

        if encoder is not None and not isinstance(encoder, nn.Module):
            raise TypeError(f"encoder={encoder!r}: pass the module itself, such as MyModule()")
        fitted, about = load_map(path, encoder)
        kinds = {kind.__name__: kind for kind in (DRE, DeepTSNE, DeepUMAP)}
        with sound(path):
            parameters = {name: decode(value, encoder) for name, value in about["parameters"].items()}
            model: DRE = kinds.get(about["class"], cls)(**parameters)
            names = about["feature_names_in"]
        if device is not None:
            model.set_params(device=device)
        fitted.encoder = Runtime.on(model.device).place(fitted.encoder)
        model._map = fitted
        model.n_features_in_ = fitted.shape[0]
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    @property
    def embedding_(self) -> Array:
        self._fitted()
        if "_embedding" not in vars(self):
            raise AttributeError("the embedding is not saved with a model: transform(X) gives it again")
        return self._embedding

    @property
    def encoder_(self) -> nn.Module:
        return self._fitted().encoder

    @property
    def recipe_(self) -> Recipe:
        return self._fitted().recipe

    @property
    def schedule_(self) -> Schedule:
        return self._fitted().recipe.schedule

    @property
    def history_(self) -> list[dict[str, Any]]:
        return self._fitted().history

    @property
    def stages_(self) -> list[Weights | None]:
        return self._fitted().stages

    @property
    def _n_features_out(self) -> int:
        return self._fitted().n_components

    def _fitted(self) -> FittedMap:
        if "_map" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has not been fitted yet: call fit(X) first")
        return self._map

    def __sklearn_is_fitted__(self) -> bool:
        return "_map" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        """The recipe, and what the user wants in place of its own."""
        n_neighbors, min_dist = two(self.umap, "umap=(n_neighbors, min_dist)")
        if not isinstance(self.recipe, (str, Recipe)):
            raise TypeError(f"recipe={self.recipe!r}: expected a name, such as 'auto' or 'paper', or a Recipe")
        return self.recipe, replace(
            self._training_overrides(),
            schedule=read("schedule", self.schedule, Schedule.parse, Schedule),
            perplexity=number("perplexity", self.perplexity),
            n_neighbors=number("n_neighbors", n_neighbors, whole=True),
            min_dist=number("min_dist", min_dist),
            recursions=number("recursions", self.recursions, whole=True),
        )

    def _training_overrides(self) -> Overrides:
        batches, rate = two(self.training, "training=(batches, learning rate)")
        return Overrides(
            encoder=read("encoder", self.encoder, ENCODERS.parse, Encoder, nn.Module),
            batches=read("batches", batches, BATCHES.parse, Batches, int),
            optimizer=rate if isinstance(rate, Optimizer) else number("the learning rate", rate),
            augment=self._augment_override(),
        )

    def _augment_override(self) -> Augment | None:
        if isinstance(self.augment, str) and self.augment == "none":
            return Noise(0)
        if callable(self.augment) and not isinstance(self.augment, (Augment, type)):
            return CallableAugment(self.augment)
        said: Augment | None = read("augment", self.augment, parse_augment, Augment)
        return said

    def _default_observers(self) -> list[Observer]:
        bar = self.verbose or (self.verbose is None and is_interactive())
        return [*([Progress()] if bar else []), *([Verbose()] if self.verbose else [])]  # the bar is gone when a line is said


@contextmanager
def _all_or_nothing(model: DRE) -> Iterator[None]:
    """A fit that fails leaves the model as it was."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _build(plan: Encoder | nn.Module, shape: tuple[int, ...], n_components: int, random: IsolatedRNG) -> nn.Module:
    if not isinstance(plan, Encoder):
        return copy.deepcopy(plan)  # the user's module is a parameter: fitting must not change it
    with random():
        return plan.build(shape, n_components)


class DeepTSNE(DRE):
    """Deep t-SNE: the network without recursion, under t-SNE's loss. The parameters are those of ``DRE``."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        perplexity: float = 30,
        encoder: str | Encoder | nn.Module | None = None,
        training: tuple[int | str | Batches | None, float | Optimizer | None] | None = None,
        augment: Augmenting = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.encoder = encoder
        self.training = training
        self.augment = augment
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        return "deep-tsne", replace(self._training_overrides(), perplexity=number("perplexity", self.perplexity))


class DeepUMAP(DRE):
    """Deep UMAP: the network without recursion, under UMAP's loss. The parameters are those of ``DRE`` and of UMAP."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        encoder: str | Encoder | nn.Module | None = None,
        training: tuple[int | str | Batches | None, float | Optimizer | None] | None = None,
        augment: Augmenting = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.encoder = encoder
        self.training = training
        self.augment = augment
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        n_neighbors, min_dist = number("n_neighbors", self.n_neighbors, whole=True), number("min_dist", self.min_dist)
        return "deep-umap", replace(self._training_overrides(), n_neighbors=n_neighbors, min_dist=min_dist)
