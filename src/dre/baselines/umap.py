"""UMAP: neighbours attract, a few random rows repel, in a fuzzy graph of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.libraries import umap_learn
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed


class UMAP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """UMAP by umap-learn, with its defaults.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> UMAP(n_epochs=20, random_state=0).fit(X[:60]).transform(X[60:65]).shape
    (5, 2)

    With a ``random_state`` the library computes on one thread, and the map can be had again; without one, on all cores.
    ``n_epochs=None`` is 500 up to 10,000 rows and 200 beyond. The first fit of a process waits for the library's compiler.

    L. McInnes, J. Healy, J. Melville: UMAP: uniform manifold approximation and projection for dimension reduction.
    arXiv:1802.03426 (2018).
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(
        self,
        *,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        n_epochs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the rows of X: (n, d), or images, which are flattened."""
        umap = umap_learn().UMAP
        rows = vectors(self, X, fitting=True)
        seeded = self.random_state is not None
        model = umap(
            n_neighbors=self.n_neighbors,
            min_dist=self.min_dist,
            n_epochs=self.n_epochs,
            n_jobs=1 if seeded else -1,  # what a seed makes of it anyway, with a warning
            random_state=check_seed(self.random_state) if seeded else None,
        )
        with _own_global_state():
            self.model_ = model.fit(rows)
        self.embedding_: Array = np.array(model.embedding_, dtype=np.float32)
        return self

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32."""
        rows = vectors(self, X, fitting=False)
        with _own_global_state():
            return np.asarray(self.model_.transform(rows), dtype=np.float32)

    fit_transform = contract.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


@contextmanager
def _own_global_state() -> Iterator[None]:
    """Numpy's global random state, swapped for a fresh one: without a seed the library draws from it."""
    before = np.random.get_state()
    np.random.seed(check_seed(None))
    try:
        yield
    finally:
        np.random.set_state(before)
