"""DeepTSNE and DeepUMAP: the estimators without recursion, with the parameters of t-SNE and of UMAP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from dre.augment import Augment
from dre.batches import Batches
from dre.encoder import Encoder
from dre.model.estimator import DRE, TRAINING
from dre.optimizer import Optimizer
from dre.plan.overrides import Overrides, parse_overrides
from dre.plan.recipe import Recipe


class DeepTSNE(DRE):
    """Deep t-SNE: the network without recursion, with t-SNE's loss. The parameters are those of ``DRE``."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        metric: str | Callable[..., float] = "euclidean",
        metric_kwds: Mapping[str, Any] | None = None,
        sample: int | None = None,
        perplexity: float = 30,
        encoder: str | Encoder | nn.Module | None = None,
        augment: str | Augment | Callable[[Tensor], Tensor] | None = None,
        batch_size: int | str | Batches | None = None,
        learning_rate: float | None = None,
        optimizer: str | Optimizer | None = None,
        standardize: bool = False,
        columns: str | Sequence[str] | None = None,
        missing: str = "error",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.sample = sample
        self.perplexity = perplexity
        self.encoder = encoder
        self.augment = augment
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.standardize = standardize
        self.columns = columns
        self.missing = missing
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        return "deep-tsne", parse_overrides(**{name: getattr(self, name) for name in ("perplexity", *TRAINING)})


class DeepUMAP(DRE):
    """Deep UMAP: the network without recursion, with UMAP's loss. The parameters are those of ``DRE`` and of UMAP."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        metric: str | Callable[..., float] = "euclidean",
        metric_kwds: Mapping[str, Any] | None = None,
        sample: int | None = None,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        encoder: str | Encoder | nn.Module | None = None,
        augment: str | Augment | Callable[[Tensor], Tensor] | None = None,
        batch_size: int | str | Batches | None = None,
        learning_rate: float | None = None,
        optimizer: str | Optimizer | None = None,
        standardize: bool = False,
        columns: str | Sequence[str] | None = None,
        missing: str = "error",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.sample = sample
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.encoder = encoder
        self.augment = augment
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.standardize = standardize
        self.columns = columns
        self.missing = missing
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        return "deep-umap", parse_overrides(**{name: getattr(self, name) for name in ("n_neighbors", "min_dist", *TRAINING)})
