"""The dots of a map: each one drawn while they are few enough, all of them counted in pixels beyond."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.plot.colouring import Classes, Scale
from dre.plot.density import density
from dre.plot.look import Style, class_colours, lay_image, scale_colours, size_of

Array = np.ndarray[Any, Any]
DRAWN_UP_TO = 100_000  # rows; beyond that single dots cover each other, and take long
RASTERIZED_FROM = 5000  # dots: more of them are pixels also in an .svg or .pdf


def draw_dots(axis: Any, places: Array, coloured: Classes | Scale | None, style: Style) -> None:
    """Those without a label lie beneath the others, which are shuffled: no class hides another."""
    if len(places) > DRAWN_UP_TO:
        picture, extent = density(places, coloured, style)
        lay_image(axis, picture, extent, origin="lower")
        return
    order = np.random.default_rng(0).permutation(len(places))
    labelled = has_label(coloured, len(places))[order]
    inches = min(axis.get_window_extent().size) / axis.figure.dpi
    dots = {"s": size_of(len(places), inches), "linewidths": 0, "rasterized": len(places) > RASTERIZED_FROM}
    dots["alpha"] = float(np.interp(np.log10(max(1, len(places))), [3, 5], [0.9, 0.55]))
    if not labelled.all():
        axis.scatter(*places[order[~labelled]].T, color=style.faint, **dots)
    order = order[labelled]
    if isinstance(coloured, Classes):
        axis.scatter(*places[order].T, c=np.array(class_colours(len(coloured.names)))[coloured.codes[order]], **dots)
    elif isinstance(coloured, Scale):
        ends = {"vmin": coloured.least, "vmax": coloured.most}
        axis.scatter(*places[order].T, c=coloured.values[order], cmap=scale_colours(style), **ends, **dots)


def has_label(coloured: Classes | Scale | None, n: int) -> Array:
    if coloured is None:
        return np.zeros(n, dtype=bool)
    return np.asarray(coloured.codes >= 0 if isinstance(coloured, Classes) else np.isfinite(coloured.values))
