"""The Shepard diagram as a picture: distances between rows against distances in the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.shepard_diagram import ShepardDiagram
from dre.plot.look import Style, one_axis, plain, style_of


def shepard(diagram: ShepardDiagram, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw what ``shepard_diagram(X, Y)`` counted; half of the pairs of each distance lie between the thin lines."""
    if not isinstance(diagram, ShepardDiagram):
        raise TypeError("pass dre.metrics.shepard_diagram(X, Y), not the rows themselves")
    from matplotlib.colors import LinearSegmentedColormap

    look = style_of(style)
    axis = one_axis(ax, 5.4, 4.4, style=look)
    shares = diagram.counts / max(1, diagram.counts.max())
    picture = np.where(shares > 0, shares, np.nan) ** 0.4  # so that rare pairs are seen beside the common ones
    shades = LinearSegmentedColormap.from_list("shades", (look.paper, look.ink))
    axis.pcolormesh(diagram.high_edges, diagram.low_edges, picture.T, cmap=shades, vmin=0, vmax=1.25, rasterized=True)
    centres = (diagram.high_edges[1:] + diagram.high_edges[:-1]) / 2
    # where there are next to no pairs, a median jumps about
    enough = diagram.counts.sum(1) >= max(10, 1e-5 * diagram.counts.sum())
    for share, width in ((0.25, 0.8), (0.5, 2.2), (0.75, 0.8)):
        axis.plot(centres[enough], _quantile(diagram, share)[enough], color=look.accent, linewidth=width)
    axis.text(0.03, 0.96, "median and quartiles", transform=axis.transAxes, va="top", color=look.accent, fontsize=9)
    plain(axis, title or "Shepard diagram", "distance between rows", "distance in the map", look)
    return axis


def _quantile(diagram: ShepardDiagram, share: float) -> Any:
    """For every distance between rows, the distance in the map below which this share of the pairs lies."""
    below = diagram.counts.cumsum(1) >= share * diagram.counts.sum(1, keepdims=True)
    centres = (diagram.low_edges[1:] + diagram.low_edges[:-1]) / 2
    return centres[below.argmax(1)]
