"""UMAP by umap-learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from dre.baselines import sklearn_api
from dre.baselines.sklearn_api import Array, import_umap, vectors
from dre.data.validation import check_seed


class UMAP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """UMAP by umap-learn, with its defaults.

    The first fit in a process includes the time that the library takes to compile.

    Parameters
    ----------
    n_neighbors : int, default=15
        Size of the local neighborhood, including the row itself.
    min_dist : float, default=0.1
        Effective minimum distance between embedded points.
    metric : str, default="euclidean"
        Distance between rows, by its name in umap-learn.
    n_epochs : int or None, default=None
        Epochs of the layout. None: 500 up to 10,000 rows, 200 beyond.
    random_state : int, RandomState or None, default=None
        With a seed the library uses one thread and the embedding is reproducible; None uses all cores.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    model_ : umap.UMAP
        The fitted estimator of umap-learn.
    row_shape_ : tuple of int
        Shape of one training row.

    References
    ----------
    L. McInnes, J. Healy, J. Melville: UMAP: uniform manifold approximation and projection for dimension reduction.
    arXiv:1802.03426 (2018).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> UMAP(n_epochs=20, random_state=0).fit(X[:60]).transform(X[60:65]).shape
    (5, 2)
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(
        self,
        *,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        metric: str = "euclidean",
        n_epochs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.metric = metric
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows of X: vectors (n, d), or images, which are flattened."""
        umap = import_umap().UMAP
        rows = vectors(self, X, fitting=True)
        seeded = self.random_state is not None
        model = umap(
            n_neighbors=self.n_neighbors,
            min_dist=self.min_dist,
            metric=self.metric,
            n_epochs=self.n_epochs,
            n_jobs=1 if seeded else -1,  # a seed forces this anyway, with a warning
            random_state=check_seed(self.random_state) if seeded else None,
        )
        with _isolated_global_rng():
            self.model_ = model.fit(rows)
        self.embedding_: Array = np.array(model.embedding_, dtype=np.float32)
        return self

    def transform(self, X: Any) -> Array:
        """Embed the rows of X, float32."""
        rows = vectors(self, X, fitting=False)
        with _isolated_global_rng():
            return np.asarray(self.model_.transform(rows), dtype=np.float32)

    fit_transform = sklearn_api.fit_transform

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


@contextmanager
def _isolated_global_rng() -> Iterator[None]:
    """Swap NumPy's global random state for a fresh one: without a seed the library draws from it."""
    before = np.random.get_state()
    np.random.seed(check_seed(None))
    try:
        yield
    finally:
        np.random.set_state(before)
