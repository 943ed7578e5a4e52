"""Principal component analysis: the two directions in which the rows vary most."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import decomposition
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The first two principal components, by scikit-learn (K. Pearson: On lines and planes of closest fit, 1901).

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> PCA().fit(X[:200]).transform(X[200:205]).shape
    (5, 2)

    ``random_state`` matters for large rows alone, whose components scikit-learn finds by random projection.
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of X: (n, d), or images, which are flattened."""
        rows = vectors(self, X, fitting=True, features=2)
        self.model_ = decomposition.PCA(2, random_state=check_seed(self.random_state)).fit(rows)
        self.embedding_ = self._places(rows)
        return self

    def transform(self, X: Any) -> Array:
        """The place of each row in the map, float32."""
        return self._places(vectors(self, X, fitting=False))

    fit_transform = contract.fit_transform

    def _places(self, rows: Array) -> Array:
        return np.asarray(self.model_.transform(rows), dtype=np.float32)

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())
