"""Stability: how far two maps of the same rows are the same picture, turned, shifted, mirrored and scaled as one likes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.points import points

Array = np.ndarray[Any, Any]


def procrustes_distance(A: Any, B: Any) -> float:
    """What is left of the difference between two maps after B has been laid over A as well as it can be: from 0 to 1.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> procrustes_distance(A, 3 * A[:, ::-1] + 1) < 1e-12
    True

    M² = min |A₀ - s B₀ R|² / |A₀|² over rotations and reflections R and scales s, A₀ and B₀ being centred; it is
    1 - (Σ σ)² / (|A₀|² |B₀|²) with the singular values σ of A₀ᵀB₀, and the same from B to A.
    """
    a, b = _centred(A, B)
    singular = np.linalg.svd(a.T @ b, compute_uv=False)
    if not (np.ptp(a, axis=0).any() and np.ptp(b, axis=0).any()):
        raise ValueError("all points of a map lie in one place: there is nothing to lay over it")
    both = float((a**2).sum() * (b**2).sum())
    return float(max(0.0, 1 - singular.sum() ** 2 / both))


def laid_over(A: Any, B: Any) -> Array:
    """B, turned, shifted, mirrored and scaled so that it lies over A as well as it can."""
    a, b = _centred(A, B)
    left, singular, right = np.linalg.svd(b.T @ a, full_matrices=False)
    scale = singular.sum() / max((b**2).sum(), np.finfo(float).tiny)
    return scale * b @ (left @ right) + points(A, "A", "cpu").double().mean(0).numpy()  # type: ignore[no-any-return]


def _centred(A: Any, B: Any) -> tuple[Array, Array]:
    a, b = (points(map_, name, "cpu").double().numpy() for map_, name in ((A, "A"), (B, "B")))
    if a.shape != b.shape:
        raise ValueError(f"A has the shape {a.shape} and B {b.shape}; both must be maps of the same rows")
    return a - a.mean(0), b - b.mean(0)
