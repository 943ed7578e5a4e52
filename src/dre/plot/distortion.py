"""Distortion of every point: neighbors that an embedding adds or separates, and shifts between two embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dre.metrics.evaluation import Evaluation
from dre.metrics.procrustes import align, procrustes_distance
from dre.metrics.recall import neighbor_agreement
from dre.plot.dots import RASTERIZED_FROM
from dre.plot.scatter import as_planar
from dre.plot.style import LIGHT, Style, add_colorbar, dot_size, get_style, map_axes, panels

Array = np.ndarray[Any, Any]
MEANING = {"trustworthiness": "neighbors that are not neighbors in the data", "continuity": "separated from its neighbors"}


def distortion(Y: Any, result: Evaluation | Mapping[str, Any], *, note: str = "", style: str | Style = "light") -> Any:
    """Draw an embedding twice, colored by the trustworthiness and by the continuity of every point.

    The most distorted points are drawn last.

    Parameters
    ----------
    Y : array-like of shape (n, 2)
        Embedding.
    result : Evaluation, or dict of str to array-like of shape (n,)
        Result of ``dre.metrics.evaluate(X, Y)``, or the values per point by the names of the metrics.
    note : str, default=""
        Text below, such as which rows these are.
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from dre.metrics import evaluate
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> figure = distortion(X[:, :2], evaluate(X, X[:, :2]))
    """
    points, theme = as_planar(Y), get_style(style)
    per_point = result.per_point if isinstance(result, Evaluation) else result
    shown = [name for name in MEANING if name in per_point]
    if any(np.ndim(per_point[name]) == 0 for name in shown):
        raise TypeError("these scores are not of single points; pass the result of evaluate itself, not dict(result)")
    if not shown:
        raise ValueError(f"the result has none of {', '.join(MEANING)}; pass the result of dre.metrics.evaluate(X, Y)")
    figure, axes = panels(len(shown), 5.8, 5.4, style=theme)
    for axis, name in zip(axes, shown, strict=True):
        values = np.asarray(per_point[name])
        if values.shape != (len(points),):
            raise ValueError(
                f"{name} has the shape {values.shape} and Y {len(points)} rows; these are different embeddings: "
                "pass the result of evaluate(X, Y) for this Y"
            )
        worst = min(float(np.quantile(values, 0.02)), 0.999)
        dots = draw_distorted(axis, points, values, best=1.0, worst=worst, style=theme)
        map_axes(axis, f"{name} {values.mean():.3f}\n{theme.distorted}: {MEANING[name]}", theme)
        add_colorbar(dots, axis, "", extend="min", style=theme)
    if note:
        figure.supxlabel(note, color=theme.text, fontsize=9)
    return figure


def stability(A: Any, B: Any, *, k: int = 15, style: str | Style = "light") -> Any:
    """Draw two embeddings of the same rows, the second aligned to the first, colored by how far points moved.

    Parameters
    ----------
    A, B : array-like of shape (n, 2)
        Embeddings of the same rows.
    k : int, default=15
        Number of neighbors of the agreement in the title.
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 2))
    >>> figure = stability(A, A @ [[0, 1], [-1, 0]])
    """
    first, second = as_planar(A), align(as_planar(A), as_planar(B))
    distance, agreement = procrustes_distance(A, B), neighbor_agreement(A, B, k=k)
    spread = np.sqrt(((first - first.mean(0)) ** 2).sum(1).mean())
    moved = np.sqrt(((first - second) ** 2).sum(1)) / spread
    worst = max(0.05, float(np.quantile(moved, 0.98)))
    theme = get_style(style)
    figure, axes = panels(2, 5.6, 5.4, style=theme)
    titles = ("first\n", f"second, aligned\nProcrustes distance {distance:.3f}, shared neighbors {agreement:.3f}")
    for axis, points, title in zip(axes, (first, second), titles, strict=True):
        dots = draw_distorted(axis, points, moved, best=0.0, worst=worst, style=theme)
        map_axes(axis, title, theme)
    add_colorbar(dots, axes, "shift, relative to the spread of the first", extend="max", style=theme)
    return figure


def draw_distorted(axis: Any, Y: Array, values: Array, *, best: float, worst: float, style: Style = LIGHT) -> Any:
    """Draw points shaded from ``best``, which recedes, to ``worst`` on top, and return the dots."""
    from matplotlib.colors import LinearSegmentedColormap

    colormap = LinearSegmentedColormap.from_list("distortion", style.distortion)
    worst_last = ((values - best) / (worst - best)).argsort(kind="stable")
    return axis.scatter(
        *Y[worst_last].T,
        c=values[worst_last],
        cmap=colormap if worst > best else colormap.reversed(),
        vmin=min(best, worst),
        vmax=max(best, worst),
        s=1.5 * dot_size(len(Y)),
        linewidths=0,
        rasterized=len(Y) > RASTERIZED_FROM,
    )
