"""A map: one dot per row, coloured by its class or by a value; with names, or with the images that were mapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.validation import check_array
from dre.notation import unknown
from dre.plot.colouring import DISTINCT, Classes, Scale, colouring
from dre.plot.dots import draw_dots
from dre.plot.look import Style, bare, one_axis, scale_colours, settle, style_of
from dre.plot.names import list_names, write_names
from dre.plot.palette import MOST
from dre.plot.shaded import bar
from dre.plot.thumbnails import draw_images

NAMED_UP_TO = DISTINCT  # classes whose names are written into the map
NAMES = ("auto", "labels", "legend", "none")


def scatter(
    Y: Any,
    labels: Any = None,
    *,
    title: str = "",
    ax: Any = None,
    style: str | Style = "light",
    names: str = "auto",
    images: Any = None,
    size: float = 5.2,
) -> Any:
    """Draw a map Y (n, 2); with labels in colours, each name at the heart of its class. Gives the axes.

    Labels that are numbers with many different values, such as the expression of a gene, get a scale of colours; rows without
    a label are grey. Up to 100,000 rows are dots; more are counted in pixels, which needs datashader.

    >>> import numpy as np
    >>> axes = scatter(np.random.default_rng(0).normal(size=(20, 2)), ["a", "b"] * 10)
    >>> sorted(text.get_text() for text in axes.texts)
    ['a', 'b']

    ``style`` is "light" or "dark". ``names``: "labels" in the map, of those classes that have room; a "legend" beside it, for
    up to 150; "none"; "auto" writes labels, or where some have no room a legend, unless the axes are ``ax``. ``images``
    (n, h, w), (n, h, w, c) or (n, c, h, w), one per row, are drawn where they lie, as many as fit without covering each other.
    ``size`` is the side of the map in inches, where there is no ``ax``.
    """
    if names not in NAMES:
        raise ValueError(unknown("names", str(names), list(NAMES)))
    places, look = flat(Y), style_of(style)
    coloured = colouring(labels, len(places))
    axis = one_axis(ax, size, size, style=look)
    axis.update_datalim(places)
    bare(axis, title, look, margin=0.04 if images is None else 0.07)
    if isinstance(coloured, Scale):
        _scale_beside(axis, coloured, look)
    settle(axis)
    draw_dots(axis, places, coloured, look)
    if images is not None:
        draw_images(axis, places, images, coloured, look)
    if isinstance(coloured, Classes):
        _name(axis, places, coloured, look, names, own=ax is None, hidden=images is not None)
    return axis


def flat(Y: Any) -> np.ndarray[Any, Any]:
    """A map as an array (n, 2), or an error that says how to get one."""
    places = np.asarray(check_array(Y, "Y"))
    if places.ndim != 2 or places.shape[1] != 2:
        raise ValueError(f"Y has the shape {places.shape}; only maps (n, 2) can be drawn: pass two of its columns")
    return places


def _name(axis: Any, places: Any, classes: Classes, style: Style, names: str, *, own: bool, hidden: bool) -> None:
    """``hidden``: there are images in the map, which names would cover; they have frames in the colours of the legend."""
    choose, count = names == "auto", len(classes.names)
    wanted = names == "labels" or (choose and count <= NAMED_UP_TO and not hidden)
    texts = write_names(axis, places, classes, style) if wanted else []
    if names == "legend" or (choose and own and len(texts) < count <= MOST):
        for text in texts:
            text.remove()
        list_names(axis, classes, style, widen=own)


def _scale_beside(axis: Any, scale: Scale, style: Style) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    shown = ScalarMappable(Normalize(scale.least, scale.most), scale_colours(style))
    bar(shown, axis, "", beyond=scale.beyond, style=style)
