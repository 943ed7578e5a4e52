"""An embedding of three components: its views along each axis, side by side."""

from __future__ import annotations

from typing import Any

from dre.plot.colors import color_by
from dre.plot.fonts import set_figure_fonts
from dre.plot.maps import draw_maps
from dre.plot.scatter import check_placement, name_of
from dre.plot.style import Style, frame_size, get_style, panels
from dre.plot.views import Views, check_embedding

RATIOS = (0.6, 2.4)


def pairs(
    Y: Any,
    labels: Any = None,
    *,
    label_name: str | None = None,
    title: str = "",
    style: str | Style = "light",
    label_placement: str = "auto",
    size: float = 4.5,
) -> Any:
    """Draw an embedding of three components as three maps, one for each pair of components.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Embedding. One with two components is a single map.
    labels : array-like of shape (n,), default=None
        Colors of the points, as in ``scatter``.
    label_name : str, default=None
        Title of the color bar or the legend. None takes the name of a pandas Series.
    title : str, default=""
    style : {"light", "dark"} or Style, default="light"
    label_placement : {"auto", "map", "legend", "none"}, default="auto"
        Where the names of the classes go: onto each map, into one legend below all, or nowhere. ``"auto"`` writes up to 12
        short names onto the maps.
    size : float, default=4.5
        Longer side of a map in inches.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> figure = pairs(np.random.default_rng(0).normal(size=(30, 3)), ["a", "b"] * 15)
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['dre2', 'dre3', 'dre3']
    """
    check_placement(label_placement)
    points, theme, name = check_embedding(Y), get_style(style), name_of(labels, label_name)
    views = Views.of([points])
    frame = frame_size(views.maps, size, RATIOS)
    figure, axes = panels(len(views.maps), *frame, style=theme)
    views.label(axes, theme)
    if title:
        figure.suptitle(title, color=theme.text, fontsize=12)
    set_figure_fonts(figure)
    coloring = color_by(labels, len(points), name)
    draw_maps(axes, views.maps, coloring, theme, name=name or "", placement=label_placement, frame=frame)
    return figure
