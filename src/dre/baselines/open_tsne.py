"""openTSNE: t-SNE that places new rows in the map of the old ones."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.libraries import open_tsne
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed


class OpenTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """t-SNE by openTSNE, with its defaults; it chooses Barnes-Hut or interpolation by the number of rows.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> OpenTSNE(perplexity=10, n_iter=50, n_jobs=1, random_state=0).fit(X[:60]).transform(X[60:65]).shape
    (5, 2)

    New rows start between their nearest neighbours and move by the attraction of these and the repulsion of all old rows,
    which stay where they are. ``n_iter`` counts what comes after the 250 iterations of early exaggeration. ``n_jobs=-1`` uses
    all cores; from 1,000 rows on, where neighbours are approximate, another number of them gives another map.

    P. G. Poličar, M. Stražar, B. Zupan: openTSNE: a modular Python library for t-SNE dimensionality reduction and embedding.
    Journal of Statistical Software 109 (2024).
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(
        self,
        *,
        perplexity: float = 30,
        n_iter: int = 500,
        n_jobs: int = -1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.perplexity = perplexity
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the rows of X: (n, d), or images, which are flattened."""
        tsne = open_tsne().TSNE
        rows = vectors(self, X, fitting=True, features=2)
        model = tsne(
            perplexity=self.perplexity, n_iter=self.n_iter, n_jobs=self.n_jobs, random_state=check_seed(self.random_state)
        )
        places = model.fit(rows)
        # The library moves a map to the middle of its axes when it first embeds new rows. Done here, old and new rows agree.
        places -= (places.max(0) + places.min(0)) / 2
        self.model_ = places
        self.embedding_: Array = np.asarray(places, dtype=np.float32)
        return self

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32."""
        rows = vectors(self, X, fitting=False)
        old = self.model_
        # A copy of the map: the library writes into the one that it works on, and the next call must find the same.
        places = type(old)(np.array(old), old.affinities, random_state=old.random_state, **old.gradient_descent_params)
        return np.asarray(places.transform(rows), dtype=np.float32)

    fit_transform = contract.fit_transform  # the map itself: transform(X) would place the rows a second time

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())
