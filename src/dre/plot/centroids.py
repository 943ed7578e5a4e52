"""The distances between classes, among the rows and in the map: which of them the map misplaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from dre.metrics.centroids import CentroidDistances
from dre.plot.look import Style, one_axis, plain, style_of

NAMED = 3  # of the pairs that are too close, and of those that are too far


def centroids(distances: CentroidDistances, *, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw what ``centroid_distances(X, Y, labels)`` gave: a dot per pair of classes, the most misplaced by name."""
    if not isinstance(distances, CentroidDistances):
        raise TypeError("pass dre.metrics.centroid_distances(X, Y, labels), not the rows themselves")
    look = style_of(style)
    axis = one_axis(ax, 5.4, 4.6, style=look)
    upper = np.triu_indices(len(distances.classes), 1)
    high, low = distances.high[upper], distances.low[upper]
    axis.scatter(high, low, s=22, color=look.faint, linewidths=0)
    moved = rankdata(low) - rankdata(high)
    order = moved.argsort()
    wrong = [i for i in (*order[:NAMED], *order[::-1][:NAMED]) if abs(moved[i]) > len(moved) / 10]
    axis.scatter(high[wrong], low[wrong], s=30, color=look.accent, linewidths=0)
    for i in wrong:
        name = f"{distances.classes[upper[0][i]]} – {distances.classes[upper[1][i]]}"
        to_the_left = high[i] > (high.min() + high.max()) / 2  # so that the name stays inside
        text = axis.annotate(name, (high[i], low[i]), xytext=(-6 if to_the_left else 6, 3), textcoords="offset points")
        text.set(fontsize=9, color=look.ink, ha="right" if to_the_left else "left", in_layout=False)
    axis.margins(0.12)
    plain(
        axis,
        title or "distances between classes; blue: most misplaced",
        "between their means among the rows",
        "between their means in the map",
        look,
    )
    return axis
