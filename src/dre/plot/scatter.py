"""Scatter plot of an embedding: points colored by class, number or date, with class names or images."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.data.validation import check_array
from dre.notation import unknown
from dre.plot.colors import MAX_COLORS, Categorical, Coloring, Continuous, color_by
from dre.plot.dots import draw_dots
from dre.plot.labels import draw_labels
from dre.plot.legend import NO_LABEL, legend_beside
from dre.plot.scales import add_scale
from dre.plot.style import Style, add_note, apply_layout, frame_size, get_axes, get_style, map_axes, shape_panels, wrap_title
from dre.plot.thumbnails import draw_images

Array = np.ndarray[Any, Any]
MAX_LABELS = 30  # classes whose names "auto" puts onto the map if all fit
MAX_LEGEND = 60  # classes of a legend that "auto" draws; more colors are hard to tell apart
LABEL_PLACEMENTS = ("auto", "map", "legend", "none")


def scatter(
    Y: Any,
    labels: Any = None,
    *,
    label_name: str | None = None,
    title: str = "",
    ax: Any = None,
    style: str | Style = "light",
    label_placement: str = "auto",
    images: Any = None,
    size: float = 5.2,
) -> Any:
    """Draw an embedding.

    Up to 100,000 rows are dots. More are counted in pixels, which needs datashader.

    Parameters
    ----------
    Y : array-like of shape (n, 2)
        Embedding. ``dre.plot.pairs`` draws one with three columns.
    labels : array-like of shape (n,), default=None
        Colors of the points. Numbers with many distinct values, such as the expression of a gene, and dates get a color bar.
        It is logarithmic for positive numbers that are very skewed, and its ends leave out outliers. All other labels are
        classes. Rows without a label are gray.
    label_name : str, default=None
        Title of the color bar or the legend. None takes the name of a pandas Series.
    title : str, default=""
    ax : matplotlib Axes, default=None
        Axes to draw into. None creates a new figure with the shape of the map.
    style : {"light", "dark"} or Style, default="light"
    label_placement : {"auto", "map", "legend", "none"}, default="auto"
        Where the names of the classes go: onto the map or into a legend beside it, in both cases the largest classes as far as
        there is room; or nowhere. ``"auto"`` writes up to 30 names onto the map. If some have no room, or for up to 60
        classes, it adds a legend to a new figure. More classes are named on the map. A note counts those without a name.
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w), default=None
        Images to draw at the points, as many as fit without covering each other.
    size : float, default=5.2
        Longer side of the map in a new figure, in inches.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> axes = scatter(np.random.default_rng(0).normal(size=(20, 2)), ["a", "b"] * 10)
    >>> sorted(text.get_text() for text in axes.texts)
    ['a', 'b']
    """
    check_placement(label_placement)
    points, theme, name = as_planar(Y), get_style(style), name_of(labels, label_name)
    coloring = color_by(labels, len(points), name)
    frame = frame_size([points], size)
    axis = get_axes(ax, *frame, style=theme)
    axis.update_datalim(points)
    map_axes(axis, wrap_title(title, frame[0]) if ax is None else title, theme, margin=0.04 if images is None else 0.07)
    if isinstance(coloring, Continuous):
        add_scale(axis, coloring, name or "", theme)
    caption, blank = axis.get_xlabel(), " " if _may_need_note(coloring, label_placement) else ""
    add_note(axis, blank, theme)  # takes the place of the note in the layout
    if ax is None:
        shape_panels([axis], *frame)
    apply_layout(axis)
    draw_dots(axis, points, coloring, theme)
    if images is not None:
        draw_images(axis, points, images, coloring, theme)
    if isinstance(coloring, Categorical):
        named = _Names(axis, points, coloring, theme, name or "", beside=ax is None)
        note = named.place(label_placement, has_images=images is not None)
        axis.set_xlabel(caption)
        add_note(axis, note or blank, theme)
    return axis


def check_placement(placement: str) -> None:
    """Raise a ValueError for an unknown place of class names."""
    if placement not in LABEL_PLACEMENTS:
        raise ValueError(unknown("label_placement", str(placement), list(LABEL_PLACEMENTS)))


def name_of(labels: Any, name: str | None) -> str | None:
    """Return the name of labels: the given one, or that of a pandas Series."""
    own = getattr(labels, "name", None)
    return name if name is not None else own if isinstance(own, str) else None


def as_planar(Y: Any) -> Array:
    """Return an embedding as an array (n, 2), or raise a ValueError that says how to get one."""
    points = np.asarray(check_array(Y, "Y"))
    if points.ndim != 2 or points.shape[1] != 2:
        three = "use dre.plot.pairs, or " if points.ndim == 2 and points.shape[1] == 3 else ""
        raise ValueError(f"Y has the shape {points.shape}; only embeddings (n, 2) can be drawn: {three}pass two of its columns")
    return points


def _may_need_note(coloring: Coloring, placement: str) -> bool:
    """Whether classes can be without a name, or gray points without an explanation."""
    if not isinstance(coloring, Categorical) or placement in ("none", "legend"):
        return False
    return len(coloring.names) > MAX_LABELS or not coloring.is_labeled.all() or placement == "map"


class _Names:
    """The names of the classes of one map."""

    def __init__(self, axis: Any, Y: Array, classes: Categorical, style: Style, name: str, *, beside: bool) -> None:
        self.axis, self.Y, self.classes, self.style, self.name = axis, Y, classes, style, name
        self.beside = beside  # whether the figure may grow by a legend

    def place(self, placement: str, *, has_images: bool) -> str:
        """Draw names where they belong, and return a note on what they leave out.

        With images "auto" draws a legend: labels would cover them, and their frames have the colors of the legend.
        """
        count, auto = len(self.classes.names), placement == "auto"
        if placement == "none":
            return ""
        if placement == "legend" or (auto and self.beside and (has_images or MAX_LABELS < count <= MAX_LEGEND)):
            return self._legend()
        if auto and has_images:
            return ""
        texts = draw_labels(self.axis, self.Y, self.classes, self.style)
        if auto and self.beside and len(texts) < count <= MAX_LABELS:
            for text in texts:
                text.remove()
            return self._legend()
        return name_note(self.classes, len(texts))

    def _legend(self) -> str:
        legend_beside(self.axis, self.classes, self.style, self.name, widen=self.beside)
        return ""


def name_note(classes: Categorical, named: int) -> str:
    """Say what the names on a map leave out.

    >>> from dre.plot.colors import as_classes
    >>> name_note(as_classes(["a", "b", "c", None]), 2)
    '2 of 3 classes are named, the largest first · gray: no label'
    """
    count = len(classes.names)
    parts = [] if named == count else [f"{named:,} of {count:,} classes are named, the largest first"]
    parts += ["colors repeat"] if count > MAX_COLORS else []
    parts += [] if classes.is_labeled.all() else [f"gray: {NO_LABEL}"]
    return " · ".join(parts)
