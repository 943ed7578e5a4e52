"""Embeddings after each training stage, side by side: aligned so that points can be followed, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.data.subsample import FEWEST, evenly_spaced_ids, to_array
from dre.metrics.neighborhood_hit import nearest_neighbor, neighborhood_hit
from dre.metrics.procrustes import align_stages
from dre.metrics.trustworthiness import trustworthiness
from dre.plot.colors import Categorical, color_by
from dre.plot.scatter import as_planar, scatter
from dre.plot.style import Style, get_style, panels

Array = np.ndarray[Any, Any]
MAX_COLUMNS = 5  # panels in a row
MAX_SCORED = 10_000  # rows scored for a plot: more would take minutes


def stages(
    embeddings: Sequence[Any],
    labels: Any = None,
    *,
    X: Any = None,
    metric: str = "euclidean",
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
    embeddings : sequence of array-like of shape (n, 2)
        One per stage, such as ``model.transform(X, stage=0)``.
    labels : array-like of shape (n,), default=None
        Colors of the points. Classes add the 1-NN accuracy and the neighborhood hit beneath each embedding.
    X : array-like of shape (n, d), default=None
        Rows; they add the trustworthiness. Scores are of at most 10,000 rows, which the plot states.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        Metric between rows of X.
    titles : sequence of str, default=()
        One per stage. Without titles they are "stage 0", "stage 1", …
    title : str, default=""
        Title of the figure.
    style : {"light", "dark"} or Style, default="light"
    label_placement : {"auto", "map", "legend", "none"}, default="auto"
        Where the names of the classes go, as in ``scatter``. There is no legend: ``"legend"`` acts as ``"none"``.
    size : float, default=4.0
        Width of a panel in inches.

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
    aligned = align_stages([as_planar(each) for each in embeddings])
    theme = get_style(style)
    headings = list(titles) or [f"stage {i}" for i in range(len(aligned))]
    if len(headings) != len(aligned):
        raise ValueError(f"{len(headings)} titles for {len(aligned)} embeddings; pass one for each")
    captions = _Captions(X, labels, len(aligned[0]), metric)
    figure, axes = panels(len(aligned), size, size + 0.6, max_columns=MAX_COLUMNS, style=theme)
    placement = "none" if label_placement == "legend" else label_placement
    for axis, Y, heading in zip(axes, aligned, headings, strict=True):
        axis.set_xlabel(captions.caption(Y), color=theme.text, fontsize=9.5)
        scatter(Y, labels, title=heading, ax=axis, style=theme, label_placement=placement)
    if title:
        figure.suptitle(title, color=theme.text, fontsize=12)
    if captions.note:
        figure.supxlabel(captions.note, color=theme.text, fontsize=9)
    return figure


def sample_note(shown: int, n: int) -> str:
    """State how many rows a plot is based on; empty where it is all of them."""
    return "" if shown == n else f"of {shown:,} of {n:,} rows"


class _Captions:
    """Scores beneath each embedding, all of the same sample of rows."""

    def __init__(self, X: Any, labels: Any, n: int, metric: str) -> None:
        self._metric = metric
        self._ids = evenly_spaced_ids(n, MAX_SCORED)
        enough = len(self._ids) >= FEWEST
        self._codes = self._classes(labels, n) if enough else None
        self._rows = to_array(X, self._ids) if enough and X is not None else None
        note = sample_note(len(self._ids), n)
        self.note = f"scores {note}" if note and (self._rows is not None or self._codes is not None) else ""

    def _classes(self, labels: Any, n: int) -> Array | None:
        """Return the classes of the sample, where every row has one and some class has several rows."""
        coloring = color_by(labels, n)
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
