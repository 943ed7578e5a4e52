"""Diagrams of the metrics that are more than one number: recall, Shepard diagram, silhouettes, class centroids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

from dre.metrics.centroids import CentroidDistances
from dre.metrics.inputs import unique_labels
from dre.metrics.shepard_diagram import ShepardDiagram
from dre.plot.colors import class_colors
from dre.plot.fonts import set_fonts, set_tick_labels
from dre.plot.style import Style, get_axes, get_style, plot_axes

Array = np.ndarray[Any, Any]
CLASS_GAP = 0.02  # between two classes of silhouettes, relative to the number of rows
MAX_MISPLACED = 3  # pairs of classes labeled as too close, and as too far


def recall(curves: Any, *, n: int | None = None, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw the recall of neighbors as a curve, for one embedding or several.

    Parameters
    ----------
    curves : array-like of shape (k,), or dict of str to array-like
        Result of ``dre.metrics.neighbor_recall(X, Y)``, or several by name, ``{"PCA": ..., "DRE": ...}``.
    n : int, default=None
        Number of rows; adds the recall of a random embedding.
    title : str, default=""
    ax : matplotlib Axes, default=None
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> axes = recall({"DRE": [0.5, 0.4, 0.3]}, n=1000)
    """
    named = curves if isinstance(curves, Mapping) else {"": curves}
    theme = get_style(style)
    axis = get_axes(ax, style=theme)
    longest = 0
    for (name, curve), color in zip(named.items(), class_colors(max(1, len(named))), strict=False):
        values = np.asarray(curve)
        if values.ndim != 1:
            raise ValueError(f"a curve has the shape {values.shape}; pass the result of dre.metrics.neighbor_recall(X, Y)")
        longest = max(longest, len(values))
        axis.plot(np.arange(1, len(values) + 1), values, color=color, linewidth=2)
        _label_end(axis, name, len(values), values[-1], color)
    if n is not None:
        k = np.arange(1, longest + 1)
        axis.plot(k, k / (n - 1), color=theme.unlabeled, linewidth=1, linestyle="--")
        _label_end(axis, "at random", longest, longest / (n - 1), theme.unlabeled)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    plot_axes(axis, title or "recall of neighbors", "number of neighbors k", "recall of the k nearest", theme)
    axis.set_xticks([k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= longest], minor=False)
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return axis


def _label_end(axis: Any, name: str, x: float, y: float, color: Any) -> None:
    text = axis.annotate(name, (x, y), xytext=(5, 0), textcoords="offset points", va="center", color=color, parse_math=False)
    set_fonts([text])


def shepard(diagram: ShepardDiagram, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw a Shepard diagram, with the median and the quartiles of each distance.

    Parameters
    ----------
    diagram : ShepardDiagram
        Result of ``dre.metrics.shepard_diagram(X, Y)``.
    title : str, default=""
    ax : matplotlib Axes, default=None
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from dre.metrics import shepard_diagram
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> axes = shepard(shepard_diagram(X, X[:, :2]))
    """
    if not isinstance(diagram, ShepardDiagram):
        raise TypeError("pass the result of dre.metrics.shepard_diagram(X, Y), not the rows themselves")
    from matplotlib.colors import LinearSegmentedColormap

    theme = get_style(style)
    axis = get_axes(ax, 5.4, 4.4, style=theme)
    shares = diagram.counts / max(1, diagram.counts.max())
    shades = np.where(shares > 0, shares, np.nan) ** 0.4  # keeps rare pairs visible beside frequent ones
    colormap = LinearSegmentedColormap.from_list("shades", [theme.background, theme.text])
    axis.pcolormesh(diagram.high_edges, diagram.low_edges, shades.T, cmap=colormap, vmin=0, vmax=1.25, rasterized=True)
    centers = (diagram.high_edges[1:] + diagram.high_edges[:-1]) / 2
    enough = diagram.counts.sum(1) >= max(10, 1e-5 * diagram.counts.sum())  # the median of a few pairs is noise
    for share, width in ((0.25, 0.8), (0.5, 2.2), (0.75, 0.8)):
        axis.plot(centers[enough], _quantile(diagram, share)[enough], color=theme.accent, linewidth=width)
    axis.text(0.03, 0.96, "median and quartiles", transform=axis.transAxes, va="top", color=theme.accent, fontsize=9)
    plot_axes(axis, title or "Shepard diagram", "distance between rows", "distance in the embedding", theme)
    return axis


def _quantile(diagram: ShepardDiagram, share: float) -> Array:
    """Return a quantile of the distance in the embedding for every distance between rows."""
    reached = diagram.counts.cumsum(1) >= share * diagram.counts.sum(1, keepdims=True)
    centers = (diagram.low_edges[1:] + diagram.low_edges[:-1]) / 2
    return np.asarray(centers[reached.argmax(1)])


def silhouette(values: Any, labels: Any, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw the silhouettes of all points, sorted in a band per class; a line marks their mean.

    Parameters
    ----------
    values : array-like of shape (n,)
        Result of ``dre.metrics.silhouette(Y, labels, per_point=True)``.
    labels : array-like of shape (n,)
    title : str, default=""
    ax : matplotlib Axes, default=None
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> axes = silhouette([0.9, 0.8, 0.1, -0.2], ["a", "a", "b", "b"])
    """
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"values have the shape {values.shape}; pass dre.metrics.silhouette(Y, labels, per_point=True)")
    names, codes = unique_labels(labels, len(values))
    theme = get_style(style)
    axis = get_axes(ax, 5.2, max(3.2, 0.32 * len(names) + 1.2), style=theme)
    start, middles = 0.0, []
    for code, color in enumerate(class_colors(len(names))):
        own = np.sort(values[codes == code])
        axis.fill_betweenx(start + np.arange(len(own) + 1), 0, np.append(own, own[-1]), color=color, alpha=0.85, step="post")
        middles.append(start + len(own) / 2)
        start += len(own) + CLASS_GAP * len(values)
    axis.axvline(values.mean(), color=theme.text, linewidth=1)
    axis.axvline(0, color=theme.text, linewidth=0.5)
    plot_axes(axis, title or f"silhouette {values.mean():.3f}", "closer to its own class →", "", theme)
    set_tick_labels(axis.yaxis, middles, [str(name) for name in names])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    return axis


def centroids(distances: CentroidDistances, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw the distances between class centroids, a dot per pair of classes; the most misplaced pairs are labeled.

    Parameters
    ----------
    distances : CentroidDistances
        Result of ``dre.metrics.centroid_distances(X, Y, labels)``.
    title : str, default=""
    ax : matplotlib Axes, default=None
    style : {"light", "dark"} or Style, default="light"

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from dre.metrics import centroid_distances
    >>> X = [[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]]
    >>> axes = centroids(centroid_distances(X, X, ["a", "a", "b", "b", "c", "c"]))
    """
    if not isinstance(distances, CentroidDistances):
        raise TypeError("pass the result of dre.metrics.centroid_distances(X, Y, labels), not the rows themselves")
    theme = get_style(style)
    axis = get_axes(ax, 5.4, 4.6, style=theme)
    upper = np.triu_indices(len(distances.classes), 1)
    high, low = distances.high[upper], distances.low[upper]
    axis.scatter(high, low, s=22, color=theme.unlabeled, linewidths=0)
    misplaced = _misplaced(high, low)
    axis.scatter(high[misplaced], low[misplaced], s=30, color=theme.accent, linewidths=0)
    for i in misplaced:
        name = f"{distances.classes[upper[0][i]]} – {distances.classes[upper[1][i]]}"
        at_right = high[i] > (high.min() + high.max()) / 2  # there the text goes to the left, to stay inside
        text = axis.annotate(name, (high[i], low[i]), xytext=(-6 if at_right else 6, 3), textcoords="offset points")
        text.set(fontsize=9, color=theme.text, ha="right" if at_right else "left", in_layout=False, parse_math=False)
        set_fonts([text])
    axis.margins(0.12)
    heading = title or "distances between classes; blue: most misplaced"
    plot_axes(axis, heading, "distance of centroids in the data", "distance of centroids in the embedding", theme)
    return axis


def _misplaced(high: Array, low: Array) -> list[int]:
    """Return the pairs whose rank changes most in either direction, by at least a tenth of all ranks."""
    change = rankdata(low) - rankdata(high)
    order = change.argsort()
    extremes = (*order[:MAX_MISPLACED], *order[::-1][:MAX_MISPLACED])
    return [int(i) for i in extremes if abs(change[i]) > len(change) / 10]
