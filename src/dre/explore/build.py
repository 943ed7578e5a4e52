"""Builds the content of a page from maps and rows: columns, scores per stage, trust, neighbors, clusters and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dre.data.distance_matrix import DistanceRows
from dre.data.metric import MetricLike, RowMetric, row_metric
from dre.data.subsample import FEWEST, SCORED, evenly_spaced_ids, vectors
from dre.explore.choices import choose_color, choose_title, has_labels
from dre.explore.cluster_column import CLUSTER, cluster_column
from dre.explore.columns import Column, cut_texts, decoded_texts, make_column, unused_name
from dre.explore.embedded import check_on_map, embed_model
from dre.explore.measured import PROJECTED, measure_rows
from dre.explore.nearest import MAX_POINTS as MAX_WITH_NEIGHBORS
from dre.explore.nearest import NearestRows, mean_kept, nearest_in_data
from dre.explore.page import Explorer, ShownMap, StageView
from dre.explore.thumbnails import ImageView, as_images, check_pillow, thumbnails
from dre.explore.trust import EXACT_TRUST, TRUST, TRUST_SAMPLE, trust_column
from dre.io.readers.source import summarize_names
from dre.metrics.evaluation import quick_scores
from dre.model.estimator import DRE
from dre.plot.kinds import TEXT
from dre.progress.activity import activity
from dre.progress.display import shown

Array = np.ndarray[Any, Any]
MAX_IMAGES = 100_000  # larger maps show no images: the page would be too large to open
MAX_POINTS = 1_000_000  # what a browser can handle
MAX_AXES = 3  # components that a view can show
MAX_BYTES = 160_000_000  # of the values of all columns
COMPLETE = 0.999  # recall from which a search counts as exact
Stages = Sequence[tuple[str, Array]]


def build_explorer(
    stages: Stages,
    *,
    title: str,
    rows: Any = None,
    metric_rows: Any = None,
    metric: MetricLike = "euclidean",
    metadata: Mapping[str, Any] | None = None,
    names: Any = None,
    names_title: str = "name",
    row_numbers: Any = None,
    feature_names: Sequence[str] | None = None,
    color: str | None = None,
    beside: Mapping[str, Array | Stages] | None = None,
    trust: bool = True,
    neighbors: bool = True,
    clusters: bool = True,
    images: bool | tuple[int, ...] = True,
    model: DRE | None = None,
) -> Explorer:
    """Build the page of one or several maps of the same rows.

    Parameters
    ----------
    stages : sequence of (title, array of shape (n, 2) or (n, 3))
        The maps in order. The page opens with the last one. Of more than three components the first two are shown.
    title : str
        Title of the page.
    rows : array-like, sparse matrix or Rows, default=None
        The embedded rows. Needed for trustworthiness, continuity, neighbors and images. With ``model``, also a DataFrame.
    metric_rows : array-like, sparse matrix or Rows, default=None
        Rows between which distances are measured, such as ``model.metric_rows(X)``; None measures them between ``rows``.
    metric : str or callable, default="euclidean"
        Metric between rows, as in ``dre.metrics.evaluate``, or with keywords ``dre.data.metric.row_metric(metric, kwds)``.
    metadata : mapping of str to array of shape (n,), default=None
        Columns that can color the points, filter them and describe a row: classes, numbers, dates or texts.
    names : array-like of shape (n,), default=None
        Names of the rows.
    names_title : str, default="name"
        What the names are, such as "cell"; the header of their column in exported tables.
    row_numbers : array-like of shape (n,) of int, default=None
        Positions of the rows in their file, counted from 0, if the map leaves out some of them. None numbers them from 0.
    feature_names : sequence of str, default=None
        Names of the columns of ``rows``, by which clusters are named.
    color : str, default=None
        Column that colors the points at first. None selects labels, else a category of few values, else clusters, else trust.
    beside : mapping of str to array of shape (n, 2) or (n, 3), or to stages, default=None
        Other maps of the same rows, such as UMAP's. The page opens with the first of them beside the map.
    trust : bool, default=True
        Add the column ``"trust"``: the trustworthiness of each point of the last map.
    neighbors : bool, default=True
        Keep the 10 nearest rows in the data of each row, for up to 100,000 rows.
    clusters : bool, default=True
        If no column has labels, add the column ``"cluster"``: clusters of the map, named by words or features.
    images : bool or tuple of int, default=True
        Whether to show the rows as images, if they are images. A shape such as ``(28, 28)`` treats vectors as images.
    model : DRE, default=None
        The model that made the last stage of the map. It becomes a part of the page, which then places new rows on the map.

    Returns
    -------
    Explorer
        The content of the page, for `write_page`.

    Examples
    --------
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> page = build_explorer([("map", Y)], title="cells", metadata={"type": ["B", "T"] * 15}, beside={"turned": -Y})
    >>> page.color, [shown.title for shown in page.maps], list(page.maps[0].stages[0].scores)
    ('type', ['cells', 'turned'], ['1-NN, type'])
    """
    rows = _prepared(rows, model)
    maps, notes = _shown_maps(title, stages, beside or {})
    embedding = maps[0][1][-1][1]
    pictures = check_rows(len(embedding), rows, images)
    embedded = None
    if model is not None:
        embedded = embed_model(model, images=_image_view(rows, images) if pictures is None else pictures)
        if rows is not None:
            check_on_map(model, rows, embedding)
    own, about_columns = make_columns(metadata or {}, color)
    labels, made = _labels(color, own), []
    if clusters and not has_labels(own):
        with shown(), activity("clusters"):
            found = cluster_column(embedding, own, rows=rows, feature_names=feature_names, names=names)
        made += [found] if found is not None else []
    measured, metric = rows if metric_rows is None else metric_rows, row_metric(metric)
    if metric.is_precomputed and measured is not None and not isinstance(measured, DistanceRows):
        measured = DistanceRows(measured)
    trust_name = unused_name(TRUST, own) if trust else None
    compared = _compare(measured, metric, embedding, trust=trust_name, neighbors=neighbors)
    made += compared.columns
    views, about_scores = _score(maps, measured, metric, labels)
    views = _with_kept(views, compared.nearest)
    notes += [*about_columns, *about_scores, *compared.notes]
    if pictures is None and rows is not None and images is not False and len(embedding) > MAX_IMAGES:
        notes.append(f"Images are left out: with more than {MAX_IMAGES:,} points the page would be too large to open.")
    row_names = None if names is None else [str(name) for name in np.asarray(names, dtype=object).tolist()]
    return Explorer(
        title,
        views,
        [*own, *made],
        row_names,
        thumbnails(pictures) if pictures is not None else None,
        first_color(color, own, made),
        notes,
        compared.nearest,
        names_title,
        choose_title(own, has_names=row_names is not None),
        None if row_numbers is None else np.asarray(row_numbers),
        embedded,
    )


def check_rows(n: int, rows: Any, images: bool | tuple[int, ...]) -> ImageView | None:
    """Check that a page can hold n points; return the rows as images, if the page shows images."""
    if n > MAX_POINTS:
        raise ValueError(f"{n:,} points exceed the {MAX_POINTS:,} of a page: embed a sample, or use dre.explore.atlas")
    if rows is None or images is False:
        return None
    view = _image_view(rows, images)
    if view is None or n > MAX_IMAGES:
        return None
    check_pillow()
    return view


def _image_view(rows: Any, images: bool | tuple[int, ...]) -> ImageView | None:
    """The rows as images, shown or not."""
    return None if rows is None else as_images(rows, images if isinstance(images, tuple) else None)


def _prepared(rows: Any, model: DRE | None) -> Any:
    """The rows, those of a DataFrame as numbers."""
    is_frame = hasattr(rows, "columns") and (hasattr(rows, "to_numpy") or hasattr(rows, "to_pandas"))
    if not is_frame:
        return rows
    if model is None:
        raise TypeError("rows is a DataFrame: pass model, which knows how to read it, or rows=model.prepare(frame)")
    return model.prepare(rows)


def axes_note(title: str, components: int) -> str | None:
    """What to say of a map with more components than a page shows.

    >>> axes_note("cells", 5)
    'cells has 5 components; the page shows the first two.'
    """
    return f"{title} has {components} components; the page shows the first two." if components > MAX_AXES else None


def _shown_maps(title: str, stages: Stages, beside: Mapping[str, Any]) -> tuple[list[tuple[str, Stages]], list[str]]:
    """The maps with the components that are shown, each with its title and its stages."""
    maps: list[tuple[str, Stages]] = [(title, stages)]
    for name, given in beside.items():
        maps.append((name, [(name, np.asarray(given))] if hasattr(given, "shape") else given))
    notes = [axes_note(name, each[-1][1].shape[1]) for name, each in maps]
    shown: list[tuple[str, Stages]] = [(name, [(stage, _shown_axes(each)) for stage, each in given]) for name, given in maps]
    return shown, [note for note in notes if note is not None]


def _shown_axes(embedding: Array) -> Array:
    return embedding if embedding.shape[1] <= MAX_AXES else embedding[:, :2]


def make_columns(metadata: Mapping[str, Any], color: str | None) -> tuple[list[Column], list[str]]:
    """The columns, as many and as long as a page can hold, and what to say about them."""
    if color is not None and color not in [*metadata, TRUST, CLUSTER]:
        raise ValueError(f"color {color!r} is not a column; columns: {', '.join(metadata) or 'none'}")
    missing = [name for name, values in metadata.items() if values is None]
    if missing:
        raise ValueError(f"metadata[{missing[0]!r}] is None, as dataset_labels is of a dataset without labels: leave it out")
    kept, notes, left_out, size = [], [], [], 0
    for name, values in sorted(metadata.items(), key=lambda item: item[0] != color):
        column, cut = cut_texts(make_column(name, values, colors_points=name == color))
        if size + column.values.nbytes > MAX_BYTES and name != color:
            left_out.append(name)
            continue
        kept.append(column)
        size += column.values.nbytes
        notes += [f"Texts of {name} are cut after {cut:,} characters."] if cut is not None else []
    if left_out:
        notes.append(f"Columns are left out, since the page would be too large to open: {summarize_names(left_out)}.")
    order = list(metadata)
    return sorted(kept, key=lambda column: order.index(column.name)), notes


def _labels(color: str | None, columns: Sequence[Column]) -> Column | None:
    """The classes that maps are scored by: those that color the points, or those that would."""
    grouping = {column.name: column for column in columns if column.groups_rows}
    return grouping.get(color or "", grouping.get(choose_color(columns) or ""))


def first_color(color: str | None, own: Sequence[Column], made: Sequence[Column]) -> str | None:
    """The requested column, or the one that a person would choose; else clusters, else trust, else any number or date."""
    names = [column.name for column in (*own, *made) if column.kind != TEXT]
    if color is not None:
        if color not in names:
            raise ValueError(f"color {color!r} is not among the columns that can color points: {', '.join(names) or 'none'}")
        return color
    preferred = [choose_color(own), *(column.name for column in made), *names]
    return next((name for name in preferred if name is not None), None)


def _score(
    maps: Sequence[tuple[str, Stages]], rows: Any, metric: RowMetric, labels: Column | None
) -> tuple[list[ShownMap], list[str]]:
    """Score every stage of every map on the same sample of rows; return what is shown, and what to say about the scores."""
    n = len(maps[0][1][-1][1])
    if n < FEWEST or (rows is None and labels is None):
        return [ShownMap(name, [StageView(*stage) for stage in stages]) for name, stages in maps], []
    ids = evenly_spaced_ids(n, SCORED)
    sample = None if rows is None else vectors(rows, ids)
    classes = None if labels is None else (labels.name, decoded_texts(labels, ids))
    views = []
    for name, stages in maps:
        scores = [quick_scores(sample, embedding[ids], classes, metric=metric) for _, embedding in stages]
        views.append(ShownMap(name, [StageView(*stage, found) for stage, found in zip(stages, scores, strict=True)]))
    return views, [f"Scores are computed on {len(ids):,} points."]


def _with_kept(maps: list[ShownMap], nearest: NearestRows | None) -> list[ShownMap]:
    """Every stage with the number of neighbors that it keeps on average: few of noisy rows, even in a good map."""
    if nearest is None:
        return maps
    return [
        replace(each, stages=[replace(stage, kept=mean_kept(nearest, stage.embedding)) for stage in each.stages])
        for each in maps
    ]


@dataclass(frozen=True, eq=False)
class _Compared:
    """What the comparison of a map with its data gives."""

    columns: list[Column] = field(default_factory=list)
    nearest: NearestRows | None = None
    notes: list[str] = field(default_factory=list)


def _compare(rows: Any, metric: RowMetric, embedding: Array, *, trust: str | None, neighbors: bool) -> _Compared:
    """The trust of every point, as a column of this name, and the nearest rows of every row."""
    n = len(embedding)
    if rows is None or n < FEWEST or not (trust or neighbors):
        return _Compared()
    measured, notes = measure_rows(rows, metric), []
    columns = [trust_column(measured, embedding, trust)] if trust else []
    nearest = nearest_in_data(measured.vectors, metric=measured.metric) if neighbors and n <= MAX_WITH_NEIGHBORS else None
    if trust and n > EXACT_TRUST:
        notes.append(f"{trust} is estimated from {TRUST_SAMPLE:,} points.")
    if neighbors and nearest is None:
        notes.append(f"Nearest rows in the data are left out: there are more than {MAX_WITH_NEIGHBORS:,} points.")
    if nearest is not None and nearest.recall < COMPLETE:
        notes.append(f"Nearest rows in the data are searched approximately; {nearest.recall:.0%} of them are found.")
    if measured.is_projected:
        notes.append(f"Distances in the data are those of {PROJECTED} random projections, which keep them to about 5 %.")
    return _Compared(columns, nearest, notes)
