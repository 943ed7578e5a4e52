"""The names of classes: at their hearts in the map, where there is room, or in a list beside it."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from dre.plot.colouring import Classes
from dre.plot.look import Style, class_colours
from dre.plot.palette import MOST

Array = np.ndarray[Any, Any]
IN_A_LINE = 20  # letters of a name in the map
IN_A_LIST = 32  # letters of a name beside it
APART = 2.0  # points between two names, at least
FEW = 6  # rows of a class that its name must not hide
# Where a name is tried, in its heights from the heart of the class: there, and then in rings about it.
TRIED = [(0.0, 0.0)] + [
    (1.4 * ring * np.cos(turn), ring * np.sin(turn)) for ring in (0.7, 1.4, 2.1) for turn in np.linspace(0, 2 * np.pi, 13)[:-1]
]


def write_names(axis: Any, places: Array, classes: Classes, style: Style) -> list[Any]:
    """Names in the map, of the largest classes first; one that would cover another is left out. Gives the texts."""
    from matplotlib.patheffects import withStroke

    inches = min(axis.get_window_extent().size) / axis.figure.dpi
    size = (11.0 if len(classes.names) <= 12 else 9.5 if len(classes.names) <= 40 else 7.5) * min(1.6, max(0.8, inches / 5.2))
    how = {"ha": "center", "va": "center", "weight": "bold", "fontsize": size, "in_layout": False, "zorder": 5}
    outline = [withStroke(linewidth=3, foreground=style.paper)]
    rows = classes.rows()
    colours = class_colours(len(classes.names))
    written: list[Any] = []
    taken = np.empty((0, 4))
    for code in sorted(range(len(rows)), key=lambda code: -len(rows[code])):
        x, y = heart(places[rows[code]])
        colour = _readable(colours[code], style) if len(rows) > 1 else style.ink
        text = axis.text(x, y, fill(classes.names[code], IN_A_LINE), color=colour, path_effects=outline, **how)
        place = _room(axis, text, taken, over=len(rows[code]) >= FEW)
        if place is None:
            text.remove()
            continue
        box, spot = place
        if spot is not None:
            text.set_position(spot)
        taken = np.vstack([taken, box])
        written.append(text)
    return written


def list_names(axis: Any, classes: Classes, style: Style, *, widen: bool) -> Any:
    """A list to the right of the map, in as many columns as it takes; the figure grows by its width where it may."""
    from matplotlib.lines import Line2D

    if len(classes.names) > MOST:
        raise ValueError(f"{len(classes.names):,} classes are too many to list, {MOST} at most: pass names='none' or 'labels'")
    colours: list[Any] = [*class_colours(len(classes.names))]
    names = [name if len(name) <= IN_A_LIST else f"{name[: IN_A_LIST - 1]}…" for name in classes.names]
    if (classes.codes < 0).any():
        colours, names = [*colours, style.faint], [*names, "no label"]
    dots = [Line2D([], [], marker="o", linestyle="", markersize=6, color=colour) for colour in colours]
    size = 10 if len(names) <= 20 else 8
    lines = max(1, int(axis.get_window_extent().height * 72 / axis.figure.dpi / (1.5 * size)))
    how = {"ncols": -(-len(names) // lines), "fontsize": size, "frameon": False, "labelcolor": style.ink, "handletextpad": 0.2}
    how |= {"columnspacing": 1.0, "labelspacing": 0.3, "borderaxespad": 0.2}
    if not widen:
        return axis.legend(dots, names, loc="upper left", bbox_to_anchor=(1.01, 1), **how)
    figure = axis.figure
    made = figure.legend(dots, names, loc="outside right upper", **how)
    figure.set_figwidth(figure.get_figwidth() + made.get_window_extent().width / figure.dpi + 0.1)
    return made


def heart(places: Array, sample: int = 300) -> Array:
    """The point of a class that has the others of it nearest: a mean may lie where there is none of it."""
    some = places[:: max(1, len(places) // sample)][: 2 * sample]
    apart = np.sqrt(((some[:, None] - some[None]) ** 2).sum(2))
    found: Array = some[np.median(apart, axis=1).argmin()]
    return found


def _room(axis: Any, text: Any, taken: Array, *, over: bool) -> tuple[Array, Any] | None:
    """A box (left, bottom, right, top) in pixels that is free and inside, and the place for it: None for where the text is.

    It may lie over the heart, or must not.
    """
    frame = axis.get_window_extent()
    box = text.get_window_extent()
    margin = APART * axis.figure.dpi / 72
    middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    half = np.array([box.width, box.height]) / 2 + margin / 2
    line = box.height / (text.get_text().count("\n") + 1)
    for offset in TRIED:
        centre = middle + np.array(offset) * line
        left, bottom, right, top = spot = np.concatenate([centre - half, centre + half])
        inside = left >= frame.x0 and bottom >= frame.y0 and right <= frame.x1 and top <= frame.y1
        free = (left >= taken[:, 2]) | (right <= taken[:, 0]) | (bottom >= taken[:, 3]) | (top <= taken[:, 1])
        clear = over or (np.abs(centre - middle) > half + margin).any()
        if inside and clear and free.all():
            moved = np.array(axis.transData.transform(text.get_position())) + np.array(offset) * line
            return spot, None if offset == (0.0, 0.0) else axis.transData.inverted().transform(moved)
    return None


def _readable(colour: tuple[float, float, float], style: Style) -> tuple[float, ...]:
    """A class's colour, nearer to the ink: letters are thinner than dots."""
    from matplotlib.colors import to_rgb

    return tuple(0.65 * own + 0.35 * ink for own, ink in zip(colour, to_rgb(style.ink), strict=True))
