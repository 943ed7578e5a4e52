"""Builds the content of a page from embeddings and rows: columns, scores per stage, trust per point, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.metric import check_metric, transform_rows
from dre.data.subsample import FEWEST, SCORED, evenly_spaced_ids, vectors
from dre.explore.columns import Column, make_column, make_scale
from dre.explore.page import Explorer, ShownMap, StageView
from dre.explore.thumbnails import ImageView, as_images, check_pillow, thumbnails
from dre.metrics.evaluation import quick_scores
from dre.observe.progress import progress_bar
from dre.plot.style import DARK, LIGHT

Array = np.ndarray[Any, Any]
MAX_IMAGES = 100_000  # larger maps show no images: the page would be too large to open
MAX_POINTS = 1_000_000  # what a browser can handle
TRUST = "trust"
TRUST_ENDS = (0.5, 1.0)  # the colors are absolute: .98 looks good on every page
EXACT_TRUST = 10_000  # points up to which all pairs are compared
TRUST_SAMPLE = 5_000  # points that each point of a larger map is compared with
NEIGHBORS = 7
BLOCK = 1024  # points at a time


def build_explorer(
    stages: Sequence[tuple[str, Array]],
    *,
    title: str,
    rows: Any = None,
    metric_rows: Any = None,
    metric: str = "euclidean",
    metadata: Mapping[str, Any] | None = None,
    names: Any = None,
    color: str | None = None,
    trust: bool = True,
    images: bool | tuple[int, ...] = True,
) -> Explorer:
    """Build the page of one or several maps of the same rows.

    Parameters
    ----------
    stages : sequence of (title, array of shape (n, 2))
        The maps in order. The page opens with the last one.
    title : str
        Title of the page.
    rows : array-like, sparse matrix or Rows, default=None
        The embedded rows. Needed for trustworthiness, continuity and images.
    metric_rows : array-like, sparse matrix or Rows, default=None
        Rows between which distances are measured, such as ``model.metric_rows(X)``; None measures them between ``rows``.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        Metric between rows.
    metadata : mapping of str to array of shape (n,), default=None
        Columns that can color the points: classes or numbers.
    names : array-like of shape (n,), default=None
        Names of the rows.
    color : str, default=None
        Column that colors the points at first; None selects one with classes.
    trust : bool, default=True
        Add the column ``"trust"``: the trustworthiness of each point of the last map.
    images : bool or tuple of int, default=True
        Whether to show the rows as images, if they are images. A shape such as ``(28, 28)`` treats vectors as images.

    Returns
    -------
    Explorer
        The content of the page, for `write_page`.

    Examples
    --------
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> page = build_explorer([("map", Y)], title="cells", metadata={"type": ["B", "T"] * 15})
    >>> page.color, list(page.maps[0].stages[0].scores)
    ('type', ['1-NN, type'])
    """
    maps = [(name, embedding[:, :3]) for name, embedding in stages]
    n = len(maps[-1][1])
    pictures = check_rows(n, rows, images)
    columns = [make_column(name, values) for name, values in (metadata or {}).items()]
    measured = rows if metric_rows is None else metric_rows
    has_trust = trust and measured is not None and n >= FEWEST
    color = _first_color(color, columns, has_trust)
    views, sample_size = _score(maps, measured, metric, color, columns)
    notes = [f"Scores are computed on {sample_size:,} points."] if any(view.scores for view in views) else []
    if has_trust:
        columns.append(_trust_column(measured, maps[-1][1], metric))
        notes.append(f"{TRUST}: trustworthiness of each point. 1 if its neighbors in the last map are neighbors in the data.")
        notes += [f"It is estimated from {TRUST_SAMPLE:,} points."] if n > EXACT_TRUST else []
    if pictures is None and rows is not None and images is not False and n > MAX_IMAGES:
        notes.append(f"Images are left out: with more than {MAX_IMAGES:,} points the page would be too large to open.")
    row_names = None if names is None else np.asarray(names).astype(str).tolist()
    sheets = thumbnails(pictures) if pictures is not None else None
    return Explorer(title, [ShownMap(title, views)], columns, row_names, sheets, color, notes)


def check_rows(n: int, rows: Any, images: bool | tuple[int, ...]) -> ImageView | None:
    """Check that a page can hold n points; return the rows as images, if the page shows images."""
    if n > MAX_POINTS:
        raise ValueError(f"{n:,} points exceed the {MAX_POINTS:,} of a page: embed a sample, or use dre.explore.atlas")
    if rows is None or images is False:
        return None
    view = as_images(rows, images if isinstance(images, tuple) else None)
    if view is None or n > MAX_IMAGES:
        return None
    check_pillow()
    return view


def _score(
    maps: list[tuple[str, Array]], rows: Any, metric: str, color: str | None, columns: list[Column]
) -> tuple[list[StageView], int]:
    """Score every map on the same sample; return the views and the size of the sample."""
    n = len(maps[-1][1])
    ids = evenly_spaced_ids(n, SCORED)
    if n < FEWEST:
        return [StageView(name, embedding) for name, embedding in maps], len(ids)
    sample = None if rows is None else vectors(rows, ids)
    classes = _classes(color, columns, ids)
    scores = [quick_scores(sample, each[ids], classes, metric=metric) for _, each in maps]
    return [StageView(name, each, found) for (name, each), found in zip(maps, scores, strict=True)], len(ids)


def _first_color(color: str | None, columns: list[Column], has_trust: bool) -> str | None:
    """The requested column, or the first with classes, or any."""
    names = [*(each.name for each in columns), *([TRUST] if has_trust else [])]
    if color is not None and color not in names:
        raise ValueError(f"color {color!r} is not a column; columns: {', '.join(names) or 'none'}")
    grouping = [each.name for each in columns if each.groups_rows]
    return color or next(iter([*grouping, *names]), None)


def _classes(color: str | None, columns: list[Column], ids: Array) -> tuple[str, Array] | None:
    """The classes that maps are scored by: those that color the points, or the first."""
    grouping = {each.name: each.values[ids] for each in columns if each.groups_rows}
    name = color if color in grouping else next(iter(grouping), None)
    return None if name is None else (name, grouping[name])


def _trust_column(rows: Any, embedding: Array, metric: str) -> Column:
    values = point_trust(vectors(rows), embedding, metric=metric)
    colors, dark = list(reversed(LIGHT.distortion)), list(reversed(DARK.distortion))
    made = replace(make_scale(TRUST, values), colors=colors, dark=dark, low=TRUST_ENDS[0], high=TRUST_ENDS[1])
    return replace(made, scales=("linear",), scale="linear", fixed=True, low_on_top=True)


def point_trust(rows: Array, embedding: Array, *, metric: str = "euclidean") -> Array:
    """Trustworthiness of each point, float32 (n,); for large n an estimate against a sample of ``TRUST_SAMPLE`` points.

    The k nearest points of a sample lie further away than those of the full map, so the estimate has a coarser scale.
    """
    if len(rows) <= EXACT_TRUST:
        from dre.metrics import trustworthiness

        return np.asarray(trustworthiness(rows, embedding, k=NEIGHBORS, metric=metric, per_point=True), dtype=np.float32)
    sample = torch.from_numpy(evenly_spaced_ids(len(rows), TRUST_SAMPLE))
    rows = transform_rows(torch.from_numpy(rows), check_metric(metric)).numpy()
    # Centered, since distances far from the origin lose their last digits in float32.
    x, y = (torch.from_numpy((each - each.mean(0, dtype=np.float64)).astype(np.float32)) for each in (rows, embedding))
    sample_x, sample_y, found = x[sample], y[sample], []
    with progress_bar("trust", len(x)) as advance:
        for block in torch.arange(len(x)).split(BLOCK):
            found.append(_block_trust(x[block], y[block], sample_x, sample_y, sample[None] == block[:, None]))
            advance(len(block))
    return torch.cat(found).numpy()


def _block_trust(x: Tensor, y: Tensor, sample_x: Tensor, sample_y: Tensor, is_self: Tensor) -> Tensor:
    """1 − Σ (rank − k)₊ over the k nearest in the map, divided by its largest possible value."""
    m, k = sample_x.shape[0], NEIGHBORS
    nearest = torch.cdist(y, sample_y).masked_fill_(is_self, torch.inf).topk(k, largest=False).indices
    distances = torch.cdist(x, sample_x).masked_fill_(is_self, torch.inf)
    ranks = torch.searchsorted(distances.sort(dim=1).values, distances.gather(1, nearest).contiguous()) + 1
    return 1 - (ranks - k).clamp_min(0).sum(1) / (k * (2 * m - 3 * k - 1) / 2)
