"""Barnes-Hut t-SNE: t-SNE whose repulsion treats far rows in groups."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.manifold import TSNE
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.in_sample import refusal
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed


class BarnesHutTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """t-SNE by scikit-learn, from principal components; in-sample.

    >>> from sklearn.datasets import load_digits
    >>> BarnesHutTSNE(perplexity=10, max_iter=250, random_state=0).fit_transform(load_digits().images[:60]).shape
    (60, 2)

    ``n_jobs`` are the threads of the neighbour search (-1: one per core); the descent uses all threads that OpenMP has.

    L. van der Maaten: Accelerating t-SNE using tree-based algorithms. Journal of Machine Learning Research 15 (2014).
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(
        self,
        *,
        perplexity: float = 30,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.perplexity = perplexity
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the rows of X: (n, d), or images, which are flattened."""
        rows = vectors(self, X, fitting=True, features=2)
        model = TSNE(
            2,
            perplexity=self.perplexity,
            max_iter=self.max_iter,
            init="pca",
            method="barnes_hut",
            n_jobs=self.n_jobs,
            random_state=check_seed(self.random_state),
        )
        self.embedding_: Array = np.asarray(model.fit_transform(rows), dtype=np.float32)
        self.n_iter_ = model.n_iter_
        return self

    fit_transform = contract.fit_transform

    def transform(self, X: Any) -> Array:
        """New rows can't be embedded: raises ``NotImplementedError``."""
        raise refusal(self)

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())
