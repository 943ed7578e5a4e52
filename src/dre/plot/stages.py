"""Embeddings after each training stage, side by side: aligned so that points can be followed, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.data.metric import MetricLike
from dre.data.subsample import FEWEST, evenly_spaced_ids, to_array
from dre.metrics.neighborhood_hit import nearest_neighbor, neighborhood_hit
from dre.metrics.procrustes import align_stages
from dre.metrics.trustworthiness import trustworthiness
from dre.plot.colors import Categorical, Coloring, color_by
from dre.plot.fonts import set_figure_fonts
from dre.plot.maps import draw_maps
from dre.plot.scatter import check_placement, name_of
from dre.plot.style import Style, frame_size, get_style, panels
from dre.plot.views import Views, check_embedding

Array = np.ndarray[Any, Any]
MAX_COLUMNS = 5  # panels in a row
MAX_SCORED = 10_000  # rows scored for a plot: more would take minutes
RATIOS = (0.7, 2.4)  # of a panel: captions need some width


def stages(
    embeddings: Sequence[Any],
    labels: Any = None,
    *,
    label_name: str | None = None,
    X: Any = None,
    metric: MetricLike = "euclidean",
    titles: Sequence[str] = (),
    title: str = "",
    style: str | Style = "light",
    label_placement: str = "auto",
    size: float = 4.0,
) -> Any:
    """Draw embeddings of the same rows side by side, from the first stage to the last.

    Each embedding is rotated and reflected to lie over the next one; its distances stay. The last one is not changed.

    Parameters
    ----------
    embeddings : sequence of array-like of shape (n, 2) or (n, 3)
        One per stage, such as ``model.transform(X, stage=0)``. With three components each pair of them has a line of its own;
        scores are those of all components.
    labels : array-like of shape (n,), default=None
        Colors of the points. Classes add the 1-NN accuracy and the neighborhood hit beneath each embedding.
    label_name : str, default=None
        Title of the color bar or the legend. None takes the name of a pandas Series.
    X : array-like of shape (n, d), default=None
        Rows; they add the trustworthiness. Scores are of at most 10,000 rows, which the plot states.
    metric : str or callable, default="euclidean"
        Metric between rows of X.
    titles : sequence of str, default=()
        One per stage. Without titles they are "stage 0", "stage 1", …
    title : str, default=""
        Title of the figure.
    style : {"light", "dark"} or Style, default="light"
    label_placement : {"auto", "map", "legend", "none"}, default="auto"
        Where the names of the classes go: onto each map, into one legend below all, or nowhere. ``"auto"`` writes up to 12
        short names onto the maps.
    size : float, default=4.0
        Longer side of a map in inches.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> figure = stages([Y, Y @ [[0, 1], [-1, 0]]], ["a", "b"] * 15, titles=["stage 0", "stage 1"])
    """
    if not len(embeddings):
        raise ValueError("there are no embeddings; pass one for each stage, such as model.transform(X, stage=0)")
    check_placement(label_placement)
    aligned = align_stages([check_embedding(each) for each in embeddings])
    theme, name = get_style(style), name_of(labels, label_name)
    headings = list(titles) or [f"stage {i}" for i in range(len(aligned))]
    if len(headings) != len(aligned):
        raise ValueError(f"{len(headings)} titles for {len(aligned)} embeddings; pass one for each")
    coloring = color_by(labels, len(aligned[0]), name)
    captions = _Captions(X, coloring, len(aligned[0]), metric)
    views = Views.of(aligned)
    frame = frame_size(views.maps, size, RATIOS)
    columns = len(aligned) if views.several else min(len(aligned), MAX_COLUMNS)
    figure, axes = panels(len(views.maps), *frame, max_columns=columns, style=theme)
    views.label(axes, theme)
    for axis, heading in zip(axes, headings, strict=False):
        axis.set_title(heading)
    for axis, Y in zip(axes[-len(aligned) :], aligned, strict=True):
        axis.set_xlabel("\n".join(filter(None, [axis.get_xlabel(), captions.caption(Y)])), color=theme.text, fontsize=9.5)
    if title:
        figure.suptitle(title, color=theme.text, fontsize=12)
    if captions.note:
        figure.supxlabel(captions.note, color=theme.text, fontsize=9)
    set_figure_fonts(figure)
    draw_maps(axes, views.maps, coloring, theme, name=name or "", placement=label_placement, frame=frame)
    return figure


def sample_note(shown: int, n: int) -> str:
    """State how many rows a plot is based on; empty where it is all of them."""
    return "" if shown == n else f"of {shown:,} of {n:,} rows"


class _Captions:
    """Scores beneath each embedding, all of the same sample of rows."""

    def __init__(self, X: Any, coloring: Coloring, n: int, metric: MetricLike) -> None:
        self._metric = metric
        self._ids = evenly_spaced_ids(n, MAX_SCORED)
        enough = len(self._ids) >= FEWEST
        self._codes = self._classes(coloring) if enough else None
        self._rows = to_array(X, self._ids) if enough and X is not None else None
        note = sample_note(len(self._ids), n)
        self.note = f"scores {note}" if note and (self._rows is not None or self._codes is not None) else ""

    def _classes(self, coloring: Coloring) -> Array | None:
        """Return the classes of the sample, where every row has one and some class has several rows."""
        if not isinstance(coloring, Categorical):
            return None
        codes: Array = coloring.codes[self._ids]
        return codes if codes.min() >= 0 and len(np.unique(codes)) < len(codes) else None

    def caption(self, Y: Array) -> str:
        own = Y[self._ids]
        lines = []
        if self._codes is not None:
            lines.append(f"1-NN {nearest_neighbor(own, self._codes):.3f}  hit {neighborhood_hit(own, self._codes):.3f}")
        if self._rows is not None:
            lines.append(f"trustworthiness {trustworthiness(self._rows, own, metric=self._metric):.3f}")
        return "\n".join(lines)
