"""Scatter plot of an embedding: points colored by class or value, with class names or images."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.validation import check_array
from dre.notation import unknown
from dre.plot.colors import MAX_COLORS, Categorical, Continuous, color_by
from dre.plot.dots import draw_dots
from dre.plot.labels import draw_labels, draw_legend
from dre.plot.style import Style, add_colorbar, apply_layout, get_axes, get_style, map_axes, value_colormap
from dre.plot.thumbnails import draw_images

Array = np.ndarray[Any, Any]
MAX_LABELS = 30  # classes that "auto" labels in the embedding
LABEL_PLACEMENTS = ("auto", "map", "legend", "none")


def scatter(
    Y: Any,
    labels: Any = None,
    *,
    title: str = "",
    ax: Any = None,
    style: str | Style = "light",
    label_placement: str = "auto",
    images: Any = None,
    size: float = 5.2,
) -> Any:
    """Draw an embedding.

    Up to 100,000 rows are dots. More are counted in pixels, which needs datashader.

    Parameters
    ----------
    Y : array-like of shape (n, 2)
        Embedding.
    labels : array-like of shape (n,), default=None
        Colors of the points. Numbers with many distinct values, such as the expression of a gene, get a color scale; all
        other labels are classes. Rows without a label are gray.
    title : str, default=""
    ax : matplotlib Axes, default=None
        Axes to draw into. None creates a new figure.
    style : {"light", "dark"} or Style, default="light"
    label_placement : {"auto", "map", "legend", "none"}, default="auto"
        Where the names of the classes go: onto the map, for the classes that have room; into a legend beside it, for up to
        150 classes; or nowhere. ``"auto"`` writes them onto the map, or into a legend of a new figure if some have no room.
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w), default=None
        Images to draw at the points, as many as fit without covering each other.
    size : float, default=5.2
        Width and height of a new figure in inches.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> axes = scatter(np.random.default_rng(0).normal(size=(20, 2)), ["a", "b"] * 10)
    >>> sorted(text.get_text() for text in axes.texts)
    ['a', 'b']
    """
    if label_placement not in LABEL_PLACEMENTS:
        raise ValueError(unknown("label_placement", str(label_placement), list(LABEL_PLACEMENTS)))
    points, theme = as_planar(Y), get_style(style)
    coloring = color_by(labels, len(points))
    axis = get_axes(ax, size, size, style=theme)
    axis.update_datalim(points)
    map_axes(axis, title, theme, margin=0.04 if images is None else 0.07)
    if isinstance(coloring, Continuous):
        _add_scale(axis, coloring, theme)
    apply_layout(axis)
    draw_dots(axis, points, coloring, theme)
    if images is not None:
        draw_images(axis, points, images, coloring, theme)
    if isinstance(coloring, Categorical):
        _draw_names(axis, points, coloring, theme, label_placement, new_figure=ax is None, has_images=images is not None)
    return axis


def as_planar(Y: Any) -> Array:
    """Return an embedding as an array (n, 2), or raise a ValueError that says how to get one."""
    points = np.asarray(check_array(Y, "Y"))
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"Y has the shape {points.shape}; only embeddings (n, 2) can be drawn: pass two of its columns")
    return points


def _draw_names(
    axis: Any, Y: Array, classes: Categorical, style: Style, placement: str, *, new_figure: bool, has_images: bool
) -> None:
    """With images "auto" draws a legend: labels would cover them, and their frames have the colors of the legend."""
    auto, count = placement == "auto", len(classes.names)
    labeled = placement == "map" or (auto and count <= MAX_LABELS and not has_images)
    texts = draw_labels(axis, Y, classes, style) if labeled else []
    if placement == "legend" or (auto and new_figure and len(texts) < count <= MAX_COLORS):
        for text in texts:
            text.remove()
        draw_legend(axis, classes, style, widen=new_figure)


def _add_scale(axis: Any, coloring: Continuous, style: Style) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    mappable = ScalarMappable(Normalize(coloring.low, coloring.high), value_colormap(style))
    add_colorbar(mappable, axis, "", extend=coloring.extend, style=style)
