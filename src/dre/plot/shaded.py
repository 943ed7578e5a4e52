"""A map whose points are shaded by how wrong they are: what is in order recedes, the worst lies on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.look import LIGHT, Style, size_of

Array = np.ndarray[Any, Any]


def shaded(axis: Any, places: Array, values: Array, *, best: float, worst: float, style: Style = LIGHT) -> Any:
    """Dots at places (n, 2), from pale at the best value to dark at the worst and beyond. Gives the dots."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("trouble", style.trouble)
    wrong = (values - best) / (worst - best)
    worst_last = wrong.argsort(kind="stable")
    return axis.scatter(
        *places[worst_last].T,
        c=values[worst_last],
        cmap=colours if worst > best else colours.reversed(),
        vmin=min(best, worst),
        vmax=max(best, worst),
        s=1.5 * size_of(len(places)),
        linewidths=0,
        rasterized=len(places) > 5000,
    )


def bar(coloured: Any, axes: Any, name: str, *, beyond: str, style: Style = LIGHT) -> None:
    """The colour bar; it ends in a point where values go on beyond it: "min", "max", "both", or "neither"."""
    figure = axes.figure if hasattr(axes, "figure") else axes[0].figure
    made = figure.colorbar(coloured, ax=axes, shrink=0.6, pad=0.02, extend=beyond)
    made.set_label(name, color=style.ink)
    made.outline.set_visible(False)
    made.ax.tick_params(colors=style.ink, length=0)
