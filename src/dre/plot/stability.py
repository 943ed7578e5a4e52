"""Two maps of the same rows, the second laid over the first: what moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.metrics.recall import neighbor_agreement
from dre.metrics.procrustes import align, procrustes_distance
from dre.plot.look import Style, bare, panels, style_of
from dre.plot.scatter import flat
from dre.plot.shaded import bar, shaded


def stability(A: Any, B: Any, *, k: int = 15, style: str | Style = "light") -> Any:
    """Draw two maps side by side, the second turned to lie over the first, coloured by how far a point moved. Gives the figure.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 2))
    >>> figure = stability(A, A @ [[0, 1], [-1, 0]])
    """
    first, second = flat(A), align(flat(A), flat(B))
    distance, agreement = procrustes_distance(A, B), neighbor_agreement(A, B, k=k)
    spread = np.sqrt(((first - first.mean(0)) ** 2).sum(1).mean())
    moved = np.sqrt(((first - second) ** 2).sum(1)) / spread
    look = style_of(style)
    figure, axes = panels(2, 5.6, 5.4, style=look)
    titles = ("first map\n", f"second, laid over it\nProcrustes distance {distance:.3f}, neighbours in common {agreement:.3f}")
    for axis, places, title in zip(axes, (first, second), titles, strict=True):
        dots = shaded(axis, places, moved, best=0.0, worst=max(0.05, float(np.quantile(moved, 0.98))), style=look)
        bare(axis, title, look)
    bar(dots, axes, "moved, in spreads of the map", beyond="max", style=look)
    return figure
