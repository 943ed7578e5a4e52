"""Names of classes at their medoids in a map, the largest classes first, as many as fit without covering each other."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from dre.plot.colors import Categorical, Color
from dre.plot.fonts import set_fonts
from dre.plot.style import Style

Array = np.ndarray[Any, Any]
LABEL_WIDTH = 20  # characters per line of a label
MAX_LINES = 3  # of a label
MAX_COVERED = 0.22  # of the map by all labels
GAP = 2.0  # points between two labels, at least
SMALL_CLASS = 6  # rows of a class that its label must not hide
MANY_CLASSES = 40  # of which no label may hide its own class
MAX_HIDDEN = 0.5  # of a class by its own label, if there is room beside it
# Offsets tried for a label, in line heights: the medoid itself, then rings around it.
OFFSETS = [(0.0, 0.0)] + [
    (1.4 * ring * np.cos(turn), ring * np.sin(turn)) for ring in (0.7, 1.4, 2.1) for turn in np.linspace(0, 2 * np.pi, 13)[:-1]
]


def draw_labels(axis: Any, Y: Array, classes: Categorical, style: Style) -> list[Any]:
    """Label the classes, largest first, and return the texts; a label without room is left out."""
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=3, foreground=style.background)]
    kwargs = {"ha": "center", "va": "center", "weight": "bold", "fontsize": _font_size(axis, len(classes.names))}
    kwargs |= {"in_layout": False, "zorder": 5, "path_effects": outline}
    rows = classes.rows()
    left = MAX_COVERED * float(axis.get_window_extent().size.prod())
    texts: list[Any] = []
    occupied = np.empty((0, 4))
    for code in classes.largest.tolist():
        if left <= 0:
            break
        x, y = medoid(Y[rows[code]])
        color = _readable(classes.colors[code], style) if len(rows) > 1 else style.text
        text = axis.text(x, y, wrapped(classes.names[code]), color=color, parse_math=False, **kwargs)
        set_fonts([text])
        may_cover = len(rows[code]) >= SMALL_CLASS and len(rows) <= MANY_CLASSES
        own = axis.transData.transform(_some(Y[rows[code]]))
        room = _find_room(axis, text, occupied, own=own, may_cover=may_cover)
        if room is None:
            text.remove()
            continue
        box, position = room
        if position is not None:
            text.set_position(position)
        occupied = np.vstack([occupied, box])
        left -= (box[2] - box[0]) * (box[3] - box[1])
        texts.append(text)
    return texts


def wrapped(name: str) -> str:
    """Break a name into a few short lines.

    >>> wrapped("excitatory neuron of layer 2/3")
    'excitatory neuron of\\nlayer 2/3'
    """
    lines = wrap(name, LABEL_WIDTH) or [name]
    return "\n".join(lines if len(lines) <= MAX_LINES else [*lines[: MAX_LINES - 1], f"{lines[MAX_LINES - 1]}…"])


def medoid(points: Array, sample: int = 300) -> Array:
    """Return the point with the smallest median distance to a sample of the others; a mean may lie outside the class."""
    some = _some(points, sample)
    distances = np.sqrt(((some[:, None] - some[None]) ** 2).sum(2))
    center: Array = some[np.median(distances, axis=1).argmin()]
    return center


def _some(points: Array, sample: int = 300) -> Array:
    return points[:: max(1, len(points) // sample)][: 2 * sample]


def _font_size(axis: Any, n_classes: int) -> float:
    inches = min(axis.get_window_extent().size) / axis.figure.dpi
    size, largest = (11.0, 1.6) if n_classes <= 12 else (9.5, 1.6) if n_classes <= MANY_CLASSES else (7.0, 1.1)
    return float(size * min(largest, max(0.8, inches / 5.2)))


def _find_room(axis: Any, text: Any, occupied: Array, *, own: Array, may_cover: bool) -> tuple[Array, Any] | None:
    """Return a free box (left, bottom, right, top) in pixels and the position for it; None where the text is already.

    Of the points of the class, ``own`` (m, 2) in pixels, the box covers at most a half if there is such a place. Without
    ``may_cover`` it must not cover the medoid.
    """
    frame = axis.get_window_extent()
    box = text.get_window_extent()
    margin = GAP * axis.figure.dpi / 72
    middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    half = np.array([box.width, box.height]) / 2 + margin / 2
    line = box.height / (text.get_text().count("\n") + 1)
    covering = None
    for offset in OFFSETS:
        center = middle + np.array(offset) * line
        left, bottom, right, top = spot = np.concatenate([center - half, center + half])
        inside = left >= frame.x0 and bottom >= frame.y0 and right <= frame.x1 and top <= frame.y1
        free = (left >= occupied[:, 2]) | (right <= occupied[:, 0]) | (bottom >= occupied[:, 3]) | (top <= occupied[:, 1])
        clear = may_cover or (np.abs(center - middle) > half + margin).any()
        if inside and clear and free.all():
            hides = ((own > spot[:2]) & (own < spot[2:])).all(axis=1).mean() > MAX_HIDDEN
            moved = np.array(axis.transData.transform(text.get_position())) + np.array(offset) * line
            found = spot, None if offset == (0.0, 0.0) else axis.transData.inverted().transform(moved)
            if not hides:
                return found
            covering = found if covering is None else covering
    return covering


def _readable(color: Color, style: Style) -> tuple[float, ...]:
    """Mix a class color with ink: letters are thinner than dots."""
    from matplotlib.colors import to_rgb

    return tuple(0.65 * own + 0.35 * ink for own, ink in zip(color, to_rgb(style.text), strict=True))
