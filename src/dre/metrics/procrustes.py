"""Procrustes analysis: align embeddings of the same rows, and measure how far they differ after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.spatial

from dre.metrics.inputs import as_points

Array = np.ndarray[Any, Any]
Scale = Literal["fit", "match", "none"]


def procrustes_distance(A: Any, B: Any) -> float:
    """Compute the Procrustes distance of two embeddings: 0 when they are the same picture, at most 1.

    M² = min |A₀ - s B₀ R|² / |A₀|² over rotations and reflections R and scales s, with A₀ and B₀ centered. It is the disparity
    of ``scipy.spatial.procrustes`` and symmetric in A and B.

    Parameters
    ----------
    A, B : array-like of shape (n, d')
        Embeddings of the same rows.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> procrustes_distance(A, 3 * A[:, ::-1] + 1) < 1e-12
    True
    """
    a, b = _read(A, B)
    if not (np.ptp(a, axis=0).any() and np.ptp(b, axis=0).any()):
        raise ValueError("all points of an embedding are equal; the Procrustes distance needs at least 2 different points")
    return float(scipy.spatial.procrustes(a, b)[2])


def align(reference: Any, embedding: Any, *, scale: Scale = "fit") -> Array:
    """Rotate, reflect, shift and scale an embedding such that it lies over the reference as closely as possible.

    Parameters
    ----------
    reference, embedding : array-like of shape (n, d')
        Embeddings of the same rows.
    scale : {"fit", "match", "none"}, default="fit"
        ``"fit"`` chooses the scale with the smallest squared error. ``"match"`` makes the embedding as large as the
        reference, in root mean square. ``"none"`` keeps all distances.

    Returns
    -------
    ndarray of shape (n, d'), float64

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> bool(np.allclose(align(A, 3 * A[:, ::-1] + 1), A))
    True
    """
    matrix, offset = alignment(reference, embedding, scale=scale)
    aligned: Array = as_points(embedding, "embedding", "cpu").double().numpy() @ matrix + offset
    return aligned


def alignment(reference: Any, embedding: Any, *, scale: Scale = "fit") -> tuple[Array, Array]:
    """Compute the matrix (d', d') and the offset (d',) by which `align` moves an embedding.

    Parameters
    ----------
    reference, embedding : array-like of shape (n, d')
        Embeddings of the same rows.
    scale : {"fit", "match", "none"}, default="fit"
        As for ``align``.

    Returns
    -------
    matrix : ndarray of shape (d', d')
    offset : ndarray of shape (d',)
        The aligned embedding is ``embedding @ matrix + offset``.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> matrix, offset = alignment(A, A[:, ::-1] + 1)
    >>> matrix.round(6).tolist(), offset.round(6).tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [-1.0, -1.0])
    """
    a, b = _read(reference, embedding, names=("reference", "embedding"))
    center, middle = a.mean(0), b.mean(0)
    a, b = a - center, b - middle
    rotation, trace = scipy.linalg.orthogonal_procrustes(b, a)
    squared = float((b**2).sum())
    if scale == "fit":
        factor = float(trace) / max(squared, np.finfo(float).tiny)
    else:
        factor = float(np.sqrt((a**2).sum() / squared)) if scale == "match" and squared else 1.0
    matrix = factor * rotation
    return matrix, center - middle @ matrix


def align_stages(embeddings: Sequence[Any], *, scale: Scale = "none") -> list[Array]:
    """Align each embedding to the next one; the last one stays as it is.

    Parameters
    ----------
    embeddings : sequence of array-like of shape (n, d')
        Embeddings of the same rows, such as those after each training stage.
    scale : {"fit", "match", "none"}, default="none"
        As for ``align``.

    Returns
    -------
    list of ndarray of shape (n, d')

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> first, last = align_stages([A[:, ::-1], A])
    >>> bool(np.allclose(first, last))
    True
    """
    aligned = [np.asarray(embeddings[-1])]
    for embedding in reversed(embeddings[:-1]):
        aligned.insert(0, align(aligned[0], embedding, scale=scale))
    return aligned


def _read(A: Any, B: Any, names: tuple[str, str] = ("A", "B")) -> tuple[Array, Array]:
    a, b = (as_points(points, name, "cpu").double().numpy() for points, name in zip((A, B), names, strict=True))
    if a.shape != b.shape:
        raise ValueError(
            f"{names[0]} has the shape {a.shape} and {names[1]} {b.shape}; both must be embeddings of the same rows"
        )
    return a, b
