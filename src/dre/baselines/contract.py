"""What all baselines are to scikit-learn, whichever library or network does the work."""

from __future__ import annotations

from typing import Any

from sklearn.utils import Tags

from dre.baselines.vectors import Array


def fit_transform(model: Any, X: Any, y: Any = None) -> Array:
    """``fit(X).embedding_``: the map of these rows."""
    embedding: Array = model.fit(X, y).embedding_
    return embedding


def takes_images(tags: Tags) -> Tags:
    """What scikit-learn is told: rows may be images or sparse, and the map is float32."""
    tags.input_tags.sparse = True
    tags.input_tags.three_d_array = True
    tags.transformer_tags.preserves_dtype = ["float32"]
    return tags
