"""The column of clusters: found in the map, and named on a sample of the rows by their texts and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.data.subsample import evenly_spaced_ids, vectors
from dre.explore.choices import is_numeric
from dre.explore.clusters import find_clusters, name_clusters
from dre.explore.columns import MISSING, Column, decoded_numbers, decoded_texts, unused_name
from dre.explore.encode import smallest_unsigned
from dre.plot.colors import MAX_COLORS, hex_colors
from dre.plot.kinds import CLASS

Array = np.ndarray[Any, Any]
CLUSTER = "cluster"
NAMED_BY = 5_000  # rows whose texts and numbers name the clusters
MAX_FEATURES = 5_000  # features that are compared; of wider rows there are no names
MAX_VALUES = 5_000_000  # numbers that are ranked
EXPLAINED = (
    "Dense parts of the map, found by HDBSCAN and named by what sets their rows apart. Points marked – lie between them."
)


def cluster_column(
    embedding: Array,
    columns: Sequence[Column],
    *,
    rows: Any = None,
    feature_names: Sequence[str] | None = None,
    names: Any = None,
) -> Column | None:
    """Cluster a map and name the clusters; None if it has no clusters.

    Parameters
    ----------
    embedding : array of shape (n, 2) or (n, 3)
    columns : sequence of Column
        Their texts and numbers name the clusters.
    rows : array-like, sparse matrix or Rows, default=None
        The embedded rows.
    feature_names : sequence of str, default=None
        Names of the columns of ``rows``; without them the rows do not name clusters.
    names : array-like of shape (n,), default=None
        Names of the rows.

    Returns
    -------
    Column or None
    """
    codes = find_clusters(embedding)
    if codes is None:
        return None
    width = 1 if rows is None or feature_names is None else len(feature_names)
    ids = evenly_spaced_ids(len(codes), min(NAMED_BY, max(500, MAX_VALUES // width)))
    texts = [decoded_texts(column, ids) for column in columns if column.names is not None and not is_numeric(column)]
    texts += [] if names is None else [np.array(list(map(str, np.asarray(names, dtype=object)[ids])), dtype=object)]
    features, titles = _features(columns, rows, feature_names, ids)
    found = name_clusters(codes[ids], int(codes.max()) + 1, texts, features, titles)
    noise = bool((codes < 0).any())
    stored = np.where(codes < 0, len(found), codes).astype(smallest_unsigned(len(found) + 1))
    name, shown = unused_name(CLUSTER, columns), [*found, *([MISSING] if noise else [])]
    return Column(name, CLASS, stored, shown, hex_colors(min(len(found), MAX_COLORS)), has_missing=noise, explain=EXPLAINED)


def _features(
    columns: Sequence[Column], rows: Any, feature_names: Sequence[str] | None, ids: Array
) -> tuple[Array | None, list[str]]:
    """Numbers of the columns and of the rows (m, d), and their names."""
    numeric = [column for column in columns if is_numeric(column)]
    found, titles = [decoded_numbers(column, ids)[:, None] for column in numeric], [column.name for column in numeric]
    if rows is not None and feature_names is not None and len(feature_names) <= MAX_FEATURES:
        new = [i for i, name in enumerate(feature_names) if name not in titles]
        found.append(vectors(rows, ids)[:, new].astype(np.float64))
        titles += [feature_names[i] for i in new]
    return (np.concatenate(found, axis=1), titles) if titles else (None, [])
