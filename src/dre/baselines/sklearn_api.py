"""What every baseline shares: input as float vectors, scikit-learn's methods and tags, optional libraries, and errors.

A baseline is a scikit-learn transformer with these additions: ``embedding_`` is float32 (n, 2), rows may be images or sparse,
and ``embeds_new_rows`` says whether ``transform`` works.
"""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dre.data.rows import is_rows, read_all
from dre.data.validation import check_rows
from dre.training.loop import DivergedError

Array = np.ndarray[Any, Any]
INSTALL = "pip install 'deep-recursive-embedding[baselines]'"


def fit_transform(model: Any, X: Any, y: Any = None) -> Array:
    """Fit to X and return the embedding of X, as ``fit(X).embedding_`` does."""
    embedding: Array = model.fit(X, y).embedding_
    return embedding


def set_image_tags(tags: Tags) -> Tags:
    """Tell scikit-learn that rows may be images or sparse, and that the embedding is float32."""
    tags.input_tags.sparse = True
    tags.input_tags.three_d_array = True
    tags.transformer_tags.preserves_dtype = ["float32"]
    return tags


def vectors(estimator: BaseEstimator, X: Any, *, fitting: bool, features: int = 1) -> Array:
    """Return X as a dense float array (n, d), always a copy, since libraries keep the rows they were fitted to.

    Images are flattened and streamed rows are read into memory. Float64 stays float64: rounding would merge rows that differ
    only in late digits. ``features`` is the smallest number of values per row that the method can use.
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
            "add a feature, or use 'umap' or 'dre', which work with one"
        )
    if is_rows(X):
        return read_all(X).reshape(X.shape[0], width)
    rows = (X.toarray() if scipy.sparse.issparse(X) else X).reshape(X.shape[0], width)
    return np.array(rows, dtype=float_for(rows.dtype), order="C")


def check_shape(fitted: tuple[int, ...], X: Any) -> None:
    """Refuse images of another shape by their shape; scikit-learn would call an image's height its number of features."""
    if (len(fitted) > 1 or len(getattr(X, "shape", (0, 0))) > 2) and np.shape(X)[1:] != fitted:
        raise ValueError(f"X has rows of shape {np.shape(X)[1:]}, but the model was fitted on {fitted}: reshape X")


def float_for(dtype: Any) -> Any:
    """Return float32 where it holds every number of this dtype, else float64.

    >>> float_for(np.uint8).name, float_for(np.int64).name, float_for(np.float64).name
    ('float32', 'float64', 'float64')
    """
    return np.dtype(np.float32 if np.result_type(dtype, np.float32) == np.float32 else np.float64)


def no_transform(estimator: BaseEstimator) -> NotImplementedError:
    """Return the error that ``transform`` of an in-sample method raises."""
    from dre.baselines import methods_for_new_rows  # imports every baseline

    others = ", ".join(methods_for_new_rows())
    return NotImplementedError(
        f"{type(estimator).__name__} can't embed new rows: it only embeds the rows it is fitted to. "
        f"Use fit_transform(X) or embedding_ for those; for new rows use a method that embeds them ({others})."
    )


def default_epochs(batches: int, *, epochs: int, min_steps: int, max_steps: int) -> int:
    """Return ``epochs``, or as many as are needed to keep the number of steps within the bounds.

    Small data make few batches and need more epochs; large data need no more than ``max_steps``.

    >>> [default_epochs(batches, epochs=40, min_steps=2_000, max_steps=10_000) for batches in (4, 240, 1200, 20_000)]
    [500, 40, 9, 1]
    """
    return min(max(epochs, math.ceil(min_steps / batches)), math.ceil(max_steps / batches))


def check_finite(error: float, epoch: int, *, name: str, remedy: str) -> None:
    """Raise ``DivergedError`` if the error of an epoch, counted from 0, is not finite.

    >>> check_finite(float("inf"), 2, name="the error of the network", remedy="pass a lower learning_rate")
    Traceback (most recent call last):
    dre.training.loop.DivergedError: the error of the network became inf in epoch 3: pass a lower learning_rate
    """
    if not math.isfinite(error):
        raise DivergedError(f"{name} became {error} in epoch {epoch + 1}: {remedy}")


def import_open_tsne() -> Any:
    """Return the module ``openTSNE``, or raise an ``ImportError`` that names the extra to install."""
    try:
        import openTSNE
    except ImportError as problem:
        raise ImportError(f"openTSNE is needed for open-tsne, fit-sne and dl-tsne: {INSTALL}") from problem
    return openTSNE


def import_umap() -> Any:
    """Return the module ``umap``, or raise an ``ImportError`` that names the extra to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # TensorFlow is missing, and only Parametric UMAP needs it
            import umap
    except ImportError as problem:
        raise ImportError(f"umap-learn is needed for umap and dl-umap: {INSTALL}") from problem
    return umap


def has_pyamg() -> bool:
    """Return whether scikit-learn's multigrid solver can be used."""
    return find_spec("pyamg") is not None
