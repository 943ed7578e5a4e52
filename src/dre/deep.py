"""DeepTSNE and DeepUMAP: the network without recursion, with the parameters that users of t-SNE and UMAP know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import nn

from dre.augment import Augmenting
from dre.batches import Batches
from dre.encoder import Encoder
from dre.estimator import DRE
from dre.inputs import number
from dre.optimiser import Optimiser
from dre.recipe import Recipe
from dre.resolve import Overrides


class DeepTSNE(DRE):
    """Deep t-SNE: the network without recursion, under t-SNE's loss. The parameters are those of ``DRE``."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        perplexity: float = 30,
        encoder: str | Encoder | nn.Module | None = None,
        training: tuple[int | str | Batches | None, float | Optimiser | None] | None = None,
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

    def _said(self) -> tuple[str | Recipe, Overrides]:
        return "deep-tsne", replace(self._said_of_training(), perplexity=number("perplexity", self.perplexity))


class DeepUMAP(DRE):
    """Deep UMAP: the network without recursion, under UMAP's loss. The parameters are those of ``DRE`` and of UMAP."""

    def __init__(
        self,
        *,
        n_components: int = 2,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        encoder: str | Encoder | nn.Module | None = None,
        training: tuple[int | str | Batches | None, float | Optimiser | None] | None = None,
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

    def _said(self) -> tuple[str | Recipe, Overrides]:
        n_neighbors, min_dist = number("n_neighbors", self.n_neighbors, whole=True), number("min_dist", self.min_dist)
        return "deep-umap", replace(self._said_of_training(), n_neighbors=n_neighbors, min_dist=min_dist)
