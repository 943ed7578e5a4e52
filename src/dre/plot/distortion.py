"""Distortion of every point: neighbors that an embedding adds or separates, and shifts between two embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dre.metrics.evaluation import Evaluation
from dre.metrics.procrustes import align, procrustes_distance
from dre.metrics.recall import neighbor_agreement
from dre.plot.colors import TRUST_ENDS, TRUST_EXPLAINED
from dre.plot.dots import RASTERIZED_FROM
from dre.plot.scales import add_colorbar
from dre.plot.scatter import as_planar
from dre.plot.style import Style, add_note, dot_size, frame_size, get_style, map_axes, panels, shape_panels, trust_colors
from dre.plot.views import Views, check_embedding

Array = np.ndarray[Any, Any]
RATIOS = (0.7, 2.4)  # of a panel: titles need some width
MEANING = {"trustworthiness": "neighbors that are not neighbors in the data", "continuity": "separated from its neighbors"}


def distortion(Y: Any, result: Evaluation | Mapping[str, Any], *, note: str = "", style: str | Style = "light") -> Any:
    """Draw an embedding twice, colored by the trustworthiness and by the continuity of every point.

    The colors mean the same in every map: they recede at 1, and end at 0.5, the mean of a random map. The most distorted
    points are drawn last.

    Parameters
    ----------
    Y : array-like of shape (n, 2) or (n, 3)
        Embedding. With three components each pair of them has a line of its own.
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
    points, theme = check_embedding(Y), get_style(style)
    shown = _per_point(result, len(points))
    views = Views.of([points] * len(shown))
    frame = frame_size(views.maps, 5.0, RATIOS)
    figure, axes = panels(len(views.maps), *frame, max_columns=len(shown), style=theme)
    worst, best = TRUST_ENDS
    views.label(axes, theme)
    last = len(axes) - len(shown)  # the first axis of the last line
    for at, (axis, Y_shown) in enumerate(zip(axes, views.maps, strict=True)):
        name, values = list(shown.items())[at % len(shown)]
        dots = draw_distorted(axis, Y_shown, values, best=best, worst=worst, colors=trust_colors(theme)[::-1])
        heading = f"{name} {values.mean():.3f}\n{theme.distorted}: {MEANING[name]}" if at < len(shown) else ""
        map_axes(axis, heading, theme)
        add_note(axis, TRUST_EXPLAINED[name].replace("; ", "\n") if at >= last else "", theme)
    below = any(values.min() < worst for values in shown.values())
    add_colorbar(dots, axes, " and ".join(shown), extend="min" if below else "neither", style=theme)
    if note:
        figure.supxlabel(note, color=theme.text, fontsize=9)
    shape_panels(axes, *frame)
    return figure


def _per_point(result: Evaluation | Mapping[str, Any], n: int) -> dict[str, Array]:
    """Return trustworthiness and continuity of each point, as far as they are there."""
    per_point = result.per_point if isinstance(result, Evaluation) else result
    shown = {name: np.asarray(per_point[name]) for name in MEANING if name in per_point}
    if not shown:
        raise ValueError(f"the result has none of {', '.join(MEANING)}; pass the result of dre.metrics.evaluate(X, Y)")
    for name, values in shown.items():
        if values.ndim == 0:
            raise TypeError("these scores are not of single points; pass the result of evaluate itself, not dict(result)")
        if values.shape != (n,):
            raise ValueError(
                f"{name} has the shape {values.shape} and Y {n} rows; these are different embeddings: "
                "pass the result of evaluate(X, Y) for this Y"
            )
    return shown


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
    frame = frame_size([first, second], 5.0, RATIOS)
    figure, axes = panels(2, *frame, style=theme)
    titles = ("first\n", f"second, aligned\nProcrustes distance {distance:.3f}, shared neighbors {agreement:.3f}")
    for axis, points, title in zip(axes, (first, second), titles, strict=True):
        dots = draw_distorted(axis, points, moved, best=0.0, worst=worst, colors=theme.distortion)
        map_axes(axis, title, theme)
    add_colorbar(dots, axes, "shift, relative to the spread of the first", extend="max", style=theme)
    shape_panels(axes, *frame)
    return figure


def draw_distorted(axis: Any, Y: Array, values: Array, *, best: float, worst: float, colors: Sequence[str]) -> Any:
    """Draw points in colors from ``best``, which recedes, to ``worst`` on top, and return the dots."""
    from matplotlib.colors import LinearSegmentedColormap

    colormap = LinearSegmentedColormap.from_list("distortion", list(colors))
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
