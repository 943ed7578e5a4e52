"""The silhouettes of all points, class by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.inputs import unique_labels
from dre.plot.look import Style, class_colours, one_axis, plain, style_of

GAP = 0.02  # of all rows, between two classes


def silhouette(values: Any, labels: Any, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw what ``silhouette(Y, labels, per_point=True)`` gave: each class a band, sorted; the line is the mean.

    >>> axes = silhouette([0.9, 0.8, 0.1, -0.2], ["a", "a", "b", "b"])
    """
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"values of the shape {values.shape}; pass dre.metrics.silhouette(Y, labels, per_point=True)")
    names, codes = unique_labels(labels, len(values))
    look = style_of(style)
    axis = one_axis(ax, 5.2, max(3.2, 0.32 * len(names) + 1.2), style=look)
    start, middles = 0.0, []
    for code, colour in enumerate(class_colours(len(names))):
        own = np.sort(values[codes == code])
        axis.fill_betweenx(start + np.arange(len(own) + 1), 0, np.append(own, own[-1]), color=colour, alpha=0.85, step="post")
        middles.append(start + len(own) / 2)
        start += len(own) + GAP * len(values)
    axis.axvline(values.mean(), color=look.ink, linewidth=1)
    axis.axvline(0, color=look.ink, linewidth=0.5)
    plain(axis, title or f"silhouette {values.mean():.3f}", "closer to its own class →", "", look)
    axis.set_yticks(middles, [str(name) for name in names])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    return axis
