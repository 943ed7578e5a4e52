"""A map: one dot per row, coloured by its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.inputs import check_array
from dre.metrics.labels import named_codes
from dre.plot.look import FAINT, INK, PAPER, bare, class_colours, one_axis, size_of

NAMED_UP_TO = 30  # classes whose names are written into the map


def scatter(Y: Any, labels: Any = None, *, title: str = "", ax: Any = None) -> Any:
    """Draw a map Y (n, 2); with labels in colours, each name at the heart of its class. Gives the axes.

    Labels that are numbers with many different values, such as the expression of a gene, get a scale of colours.

    >>> import numpy as np
    >>> axes = scatter(np.random.default_rng(0).normal(size=(20, 2)), ["a", "b"] * 10)
    >>> [text.get_text() for text in axes.texts]
    ['a', 'b']
    """
    places = flat(Y)
    axis = one_axis(ax, 5.2, 5.2)
    dots = {"s": size_of(len(places)), "linewidths": 0, "rasterized": len(places) > 5000}
    if labels is None:
        axis.scatter(*places.T, color=FAINT, **dots)
    elif _is_a_scale(labels):
        values = np.asarray(labels, dtype=float)
        shown = axis.scatter(*places.T, c=values, cmap="viridis", **dots)
        axis.figure.colorbar(shown, ax=axis, shrink=0.6, pad=0.02).outline.set_visible(False)
    else:
        names, codes = named_codes(labels, len(places))
        colours = class_colours(len(names))
        shuffled = np.random.default_rng(0).permutation(len(places))  # so that no class hides the others
        axis.scatter(*places[shuffled].T, c=[colours[code] for code in codes[shuffled]], alpha=0.8, **dots)
        if len(names) <= NAMED_UP_TO:
            _write(axis, places, names, codes, colours)
    bare(axis, title)
    return axis


def flat(Y: Any) -> np.ndarray[Any, Any]:
    """A map as an array (n, 2), or an error that says how to get one."""
    places = np.asarray(check_array(Y, "Y"))
    if places.ndim != 2 or places.shape[1] != 2:
        raise ValueError(f"Y has the shape {places.shape}; only maps (n, 2) can be drawn: pass two of its columns")
    return places


def _is_a_scale(labels: Any) -> bool:
    values = np.asarray(labels)
    return values.dtype.kind == "f" and len(np.unique(values)) > NAMED_UP_TO


def _write(axis: Any, places: Any, names: Any, codes: Any, colours: list[Any]) -> None:
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=3, foreground=PAPER)]
    for code, name in enumerate(names):
        x, y = _heart(places[codes == code])
        colour = [0.75 * part for part in colours[code][:3]] if len(names) > 1 else INK
        axis.text(x, y, str(name), ha="center", va="center", weight="bold", fontsize=11, color=colour, path_effects=outline)


def _heart(places: Any, sample: int = 500) -> Any:
    """The point of a class that has the others of it nearest: a mean may lie where there is none of it."""
    some = places[:: max(1, len(places) // sample)]
    apart = np.sqrt(((some[:, None] - some[None]) ** 2).sum(2))
    return some[np.median(apart, axis=1).argmin()]
