"""Laplacian eigenmaps: the slowest vibrations of the graph of nearest neighbours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.manifold import SpectralEmbedding
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.in_sample import refusal
from dre.baselines.libraries import has_pyamg
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed

# Up to here the Laplacian is factorised, which is exact; the memory that takes grows with the square of the rows.
FACTORISED = 2000


class LaplacianEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Laplacian eigenmaps by scikit-learn's ``SpectralEmbedding``; in-sample.

    >>> from sklearn.datasets import load_digits
    >>> LaplacianEigenmaps(random_state=0).fit_transform(load_digits().images[:200]).shape
    (200, 2)

    ``n_neighbors`` counts the row itself, and stays the same however many rows there are (scikit-learn's own default, a tenth
    of them, makes a graph that no longer fits into memory). A graph that falls apart gives a poor map, and a warning: raise it.

    M. Belkin, P. Niyogi: Laplacian eigenmaps for dimensionality reduction and data representation. Neural Computation 15
    (2003).
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(self, *, n_neighbors: int = 15, random_state: int | np.random.RandomState | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the rows of X: (n, d), or images, which are flattened."""
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

    fit_transform = contract.fit_transform

    def transform(self, X: Any) -> Array:
        """New rows can't be embedded: raises ``NotImplementedError``."""
        raise refusal(self)

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


def solver_for(n: int) -> str:
    """Of scikit-learn's solvers the one for n rows: multigrid where pyamg is installed, conjugate gradients where not.

    >>> solver_for(500)
    'arpack'
    """
    if n <= FACTORISED:
        return "arpack"
    return "amg" if has_pyamg() else "lobpcg"
