"""Embeddings from eigenvectors: principal component analysis, and Laplacian eigenmaps of the nearest-neighbor graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import decomposition
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.manifold import SpectralEmbedding
from sklearn.utils import Tags

from dre.baselines import sklearn_api
from dre.baselines.sklearn_api import Array, has_pyamg, no_transform, vectors
from dre.data.validation import check_seed

# Up to this many rows the Laplacian is factorized, which is exact; the memory it takes grows with the square of the rows.
MAX_FACTORIZED = 2000


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The first two principal components, by scikit-learn.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        Only matters for large data, whose components scikit-learn finds by random projection.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    model_ : sklearn.decomposition.PCA
        The fitted PCA.
    row_shape_ : tuple of int
        Shape of one training row.

    References
    ----------
    K. Pearson: On lines and planes of closest fit to systems of points in space. Philosophical Magazine 2 (1901).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> PCA().fit(X[:200]).transform(X[200:205]).shape
    (5, 2)
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of X: vectors (n, d), or images, which are flattened."""
        rows = vectors(self, X, fitting=True, features=2)
        self.model_ = decomposition.PCA(2, random_state=check_seed(self.random_state)).fit(rows)
        self.embedding_ = self._project(rows)
        return self

    def transform(self, X: Any) -> Array:
        """Embed the rows of X, float32."""
        return self._project(vectors(self, X, fitting=False))

    fit_transform = sklearn_api.fit_transform

    def _project(self, rows: Array) -> Array:
        return np.asarray(self.model_.transform(rows), dtype=np.float32)

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


class LaplacianEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Laplacian eigenmaps, by scikit-learn's ``SpectralEmbedding``; in-sample.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbors of each row in the graph, including the row itself. It does not grow with the data: scikit-learn's own
        default, a tenth of the rows, makes a graph that does not fit into memory. A disconnected graph gives a poor embedding
        and a warning; raise ``n_neighbors`` then.
    random_state : int, RandomState or None, default=None
        Seed of the eigensolver.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    row_shape_ : tuple of int
        Shape of one training row.

    References
    ----------
    M. Belkin, P. Niyogi: Laplacian eigenmaps for dimensionality reduction and data representation. Neural Computation 15
    (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> LaplacianEigenmaps(random_state=0).fit_transform(load_digits().images[:200]).shape
    (200, 2)
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(self, *, n_neighbors: int = 15, random_state: int | np.random.RandomState | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows of X: vectors (n, d), or images, which are flattened."""
        rows = vectors(self, X, fitting=True)
        model = SpectralEmbedding(
            2,
            affinity="nearest_neighbors",
            n_neighbors=self.n_neighbors,
            eigen_solver=solver_for(len(rows)),
            random_state=check_seed(self.random_state),
        )
        self.embedding_: Array = np.asarray(model.fit_transform(rows), dtype=np.float32)
        return self

    fit_transform = sklearn_api.fit_transform

    def transform(self, X: Any) -> Array:
        """Raise ``NotImplementedError``: the method can't embed new rows."""
        raise no_transform(self)

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


def solver_for(n: int) -> str:
    """Return scikit-learn's eigensolver for n rows: for many rows multigrid if pyamg is installed, else conjugate gradients.

    >>> solver_for(500)
    'arpack'
    """
    if n <= MAX_FACTORIZED:
        return "arpack"
    return "amg" if has_pyamg() else "lobpcg"
