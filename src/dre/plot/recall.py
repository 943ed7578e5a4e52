"""The recall of neighbours as a curve, for one map or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dre.plot.look import Style, class_colours, one_axis, plain, style_of


def recall(curves: Any, *, n: int | None = None, title: str = "", ax: Any = None, style: str | Style = "light") -> Any:
    """Draw what ``neighbor_recall(X, Y)`` gave, or several by name, {"PCA": …, "DRE": …}. Gives the axes.

    With ``n``, the number of rows, also what a random map would have.

    >>> axes = recall({"a map": [0.5, 0.4, 0.3]}, n=1000)
    """
    named = curves if isinstance(curves, Mapping) else {"": curves}
    look = style_of(style)
    axis = one_axis(ax, style=look)
    longest = 0
    for (name, curve), colour in zip(named.items(), class_colours(max(1, len(named))), strict=False):
        values = np.asarray(curve)
        if values.ndim != 1:
            raise ValueError(f"a curve of the shape {values.shape}; pass dre.metrics.neighbor_recall(X, Y), not the rows")
        longest = max(longest, len(values))
        axis.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=2)
        _name(axis, name, len(values), values[-1], colour)
    if n is not None:
        k = np.arange(1, longest + 1)
        axis.plot(k, k / (n - 1), color=look.faint, linewidth=1, linestyle="--")
        _name(axis, "at random", longest, longest / (n - 1), look.faint)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    plain(axis, title or "neighbours that the map kept", "number of neighbours k", "recall of the k nearest", look)
    axis.set_xticks([k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= longest], minor=False)
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return axis


def _name(axis: Any, name: str, x: float, y: float, colour: Any) -> None:
    axis.annotate(name, (x, y), xytext=(5, 0), textcoords="offset points", va="center", color=colour)
