"""Several maps in one figure, with one color bar or one legend for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.plot.colors import Categorical, Coloring, Continuous
from dre.plot.dots import draw_dots
from dre.plot.labels import draw_labels
from dre.plot.legend import legend_below
from dre.plot.scales import add_scale
from dre.plot.scatter import name_note
from dre.plot.style import Style, add_note, apply_layout, map_axes, shape_panels

Array = np.ndarray[Any, Any]
MAX_LABELS = 12  # classes whose names "auto" puts onto each map
MAX_LETTERS = 80  # of all these names together; longer ones would cover the points


def draw_maps(
    axes: Sequence[Any],
    maps: Sequence[Array],
    coloring: Coloring,
    style: Style,
    *,
    name: str = "",
    placement: str = "auto",
    frame: tuple[float, float] | None = None,
) -> None:
    """Draw maps (n, 2) of the same rows into axes, and explain their colors once.

    A few short names of classes go onto every map, others into a legend below all. ``frame`` is the width and height of each
    map in inches, to which the figure adapts. Titles and captions of the axes should be there already: they take room.
    """
    for axis, Y in zip(axes, maps, strict=True):
        axis.update_datalim(Y)
        map_axes(axis, axis.get_title(), style)
    if isinstance(coloring, Continuous):
        add_scale(list(axes), coloring, name, style)
    on_maps = isinstance(coloring, Categorical) and _on_maps(coloring, placement)
    if isinstance(coloring, Categorical) and not on_maps and placement in ("auto", "legend"):
        legend_below(axes[0].figure, coloring, style, name)
    captions = [axis.get_xlabel() for axis in axes]
    if on_maps and placement == "map":
        for axis in axes:
            add_note(axis, " ", style)  # takes the place of the note in the layout
    if frame is None:
        apply_layout(*axes)
    else:
        shape_panels(axes, *frame)
    for axis, Y, caption in zip(axes, maps, captions, strict=True):
        draw_dots(axis, Y, coloring, style)
        if isinstance(coloring, Categorical) and on_maps:
            texts = draw_labels(axis, Y, coloring, style)
            axis.set_xlabel(caption)
            add_note(axis, (name_note(coloring, len(texts)) or " ") if placement == "map" else "", style)


def _on_maps(classes: Categorical, placement: str) -> bool:
    if placement != "auto":
        return placement == "map"
    few = len(classes.names) <= MAX_LABELS and sum(map(len, classes.names)) <= MAX_LETTERS
    return few and bool(classes.is_labeled.all())  # gray points need an entry of a legend
