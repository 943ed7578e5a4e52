"""Names of classes: labels at their medoids in the embedding, or a legend beside it."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from dre.plot.colors import MAX_COLORS, Categorical, Color, class_colors
from dre.plot.style import Style

Array = np.ndarray[Any, Any]
LABEL_WIDTH = 20  # characters per line of a label
LEGEND_WIDTH = 32  # characters of a name in the legend
GAP = 2.0  # points between two labels, at least
SMALL_CLASS = 6  # rows of a class that its label must not hide
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
    colors = class_colors(len(classes.names))
    texts: list[Any] = []
    occupied = np.empty((0, 4))
    for code in sorted(range(len(rows)), key=lambda code: -len(rows[code])):
        x, y = medoid(Y[rows[code]])
        color = _readable(colors[code], style) if len(rows) > 1 else style.text
        text = axis.text(x, y, fill(classes.names[code], LABEL_WIDTH), color=color, **kwargs)
        room = _find_room(axis, text, occupied, may_cover=len(rows[code]) >= SMALL_CLASS)
        if room is None:
            text.remove()
            continue
        box, position = room
        if position is not None:
            text.set_position(position)
        occupied = np.vstack([occupied, box])
        texts.append(text)
    return texts


def draw_legend(axis: Any, classes: Categorical, style: Style, *, widen: bool) -> Any:
    """Add a legend to the right of the embedding; ``widen`` grows the figure by its width."""
    from matplotlib.lines import Line2D

    if len(classes.names) > MAX_COLORS:
        raise ValueError(
            f"{len(classes.names):,} classes are too many for a legend, which holds {MAX_COLORS}; "
            "pass label_placement='none' or label_placement='map'"
        )
    colors: list[Any] = [*class_colors(len(classes.names))]
    names = [name if len(name) <= LEGEND_WIDTH else f"{name[: LEGEND_WIDTH - 1]}…" for name in classes.names]
    if not classes.is_labeled.all():
        colors, names = [*colors, style.unlabeled], [*names, "no label"]
    dots = [Line2D([], [], marker="o", linestyle="", markersize=6, color=color) for color in colors]
    size = 10 if len(names) <= 20 else 8
    lines = max(1, int(axis.get_window_extent().height * 72 / axis.figure.dpi / (1.5 * size)))
    kwargs = {"ncols": -(-len(names) // lines), "fontsize": size, "frameon": False, "labelcolor": style.text}
    kwargs |= {"handletextpad": 0.2, "columnspacing": 1.0, "labelspacing": 0.3, "borderaxespad": 0.2}
    if not widen:
        return axis.legend(dots, names, loc="upper left", bbox_to_anchor=(1.01, 1), **kwargs)
    figure = axis.figure
    legend = figure.legend(dots, names, loc="outside right upper", **kwargs)
    figure.set_figwidth(figure.get_figwidth() + legend.get_window_extent().width / figure.dpi + 0.1)
    return legend


def medoid(points: Array, sample: int = 300) -> Array:
    """Return the point with the smallest median distance to a sample of the others; a mean may lie outside the class."""
    some = points[:: max(1, len(points) // sample)][: 2 * sample]
    distances = np.sqrt(((some[:, None] - some[None]) ** 2).sum(2))
    center: Array = some[np.median(distances, axis=1).argmin()]
    return center


def _font_size(axis: Any, n_classes: int) -> float:
    inches = min(axis.get_window_extent().size) / axis.figure.dpi
    size = 11.0 if n_classes <= 12 else 9.5 if n_classes <= 40 else 7.5
    return float(size * min(1.6, max(0.8, inches / 5.2)))


def _find_room(axis: Any, text: Any, occupied: Array, *, may_cover: bool) -> tuple[Array, Any] | None:
    """Return a free box (left, bottom, right, top) in pixels and the position for it; None where the text is already.

    Without ``may_cover`` the box must not cover the medoid.
    """
    frame = axis.get_window_extent()
    box = text.get_window_extent()
    margin = GAP * axis.figure.dpi / 72
    middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    half = np.array([box.width, box.height]) / 2 + margin / 2
    line = box.height / (text.get_text().count("\n") + 1)
    for offset in OFFSETS:
        center = middle + np.array(offset) * line
        left, bottom, right, top = spot = np.concatenate([center - half, center + half])
        inside = left >= frame.x0 and bottom >= frame.y0 and right <= frame.x1 and top <= frame.y1
        free = (left >= occupied[:, 2]) | (right <= occupied[:, 0]) | (bottom >= occupied[:, 3]) | (top <= occupied[:, 1])
        clear = may_cover or (np.abs(center - middle) > half + margin).any()
        if inside and clear and free.all():
            moved = np.array(axis.transData.transform(text.get_position())) + np.array(offset) * line
            return spot, None if offset == (0.0, 0.0) else axis.transData.inverted().transform(moved)
    return None


def _readable(color: Color, style: Style) -> tuple[float, ...]:
    """Mix a class color with ink: letters are thinner than dots."""
    from matplotlib.colors import to_rgb

    return tuple(0.65 * own + 0.35 * ink for own, ink in zip(color, to_rgb(style.text), strict=True))
