"""Rows as float vectors, for the methods that know no others: images flattened, sparse rows dense, small numbers as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dre.data.rows import is_rows, read_all
from dre.data.validation import check_rows

Array = np.ndarray[Any, Any]


def vectors(estimator: BaseEstimator, X: Any, *, fitting: bool, features: int = 1) -> Array:
    """X as an array (n, d) of floats, a copy: libraries keep the rows that they were fitted to. Rows are read whole.

    Float64 stays what it is, since rounding it would merge rows that differ in late digits. ``features`` is the least number
    of values in a row that the method can use.
    """
    if not fitting:
        check_is_fitted(estimator, "embedding_")
        check_shape(estimator.row_shape_, X)
    X = check_rows(estimator, X, fitting=fitting)
    if fitting:
        estimator.row_shape_ = X.shape[1:]
    width = math.prod(X.shape[1:])
    if width < features:
        raise ValueError(
            f"{type(estimator).__name__} starts from {features} principal components, but X has n_features = {width}: "
            "add a feature, or use 'umap' or 'dre', which need no more than one"
        )
    if is_rows(X):
        return read_all(X).reshape(X.shape[0], width)
    rows = (X.toarray() if scipy.sparse.issparse(X) else X).reshape(X.shape[0], width)
    return np.array(rows, dtype=float_for(rows.dtype), order="C")


def check_shape(fitted: tuple[int, ...], X: Any) -> None:
    """Images are refused in another shape by their shape; scikit-learn would call the height of an image its features."""
    if (len(fitted) > 1 or len(getattr(X, "shape", (0, 0))) > 2) and np.shape(X)[1:] != fitted:
        raise ValueError(f"X has rows of the shape {np.shape(X)[1:]}, but the model was fitted on {fitted}: reshape X")


def float_for(dtype: Any) -> Any:
    """The smaller of float32 and float64 that holds every number of this kind, or float64.

    >>> float_for(np.uint8).name, float_for(np.int64).name, float_for(np.float64).name
    ('float32', 'float64', 'float64')
    """
    return np.dtype(np.float32 if np.result_type(dtype, np.float32) == np.float32 else np.float64)
