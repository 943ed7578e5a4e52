"""Clusters of a map, for rows without labels: found by HDBSCAN and named by the words or features that set them apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.data.subsample import evenly_spaced_ids

Array = np.ndarray[Any, Any]
SAMPLE = 10_000  # points that are clustered; the others join the nearest of them
FEWEST_POINTS = 30  # fewer points have no clusters
SMALLEST = 10  # points of a cluster, at least
SMALLEST_SHARE = 0.01  # of all points
MIN_SAMPLES = 15  # neighbors that make a dense place: with fewer, HDBSCAN finds clusters in a single Gaussian
MAX_NOISE = 0.35  # share of the points; of a map without gaps, HDBSCAN leaves out more
MAX_CLUSTERS = 60  # more can't be told apart
MAX_NAME = 28  # characters, as many as a name on the map has
MAX_CHARACTERS = 2000  # of a text that are read
WORDS, FEATURES = 3, 2  # in a name, at most
TELLING_WORD = 4.0  # standard errors by which a word is more frequent in a cluster than elsewhere
LIFT = np.log(2)  # log-odds: at least twice the odds
FREQUENT = 0.04  # share of the rows of a cluster that have a word of its name
TELLING_FEATURE = 0.4  # from 0, no difference, to 1, no overlap
MEDIUM = (1 / 3, 2 / 3)  # position of neither low nor high values between the lowest and the highest cluster
ALIKE = 0.8  # rank correlation of two features that say the same
UNIFORM_SPREAD = 12**-0.5  # standard deviation of the ranks of all rows, as shares
MARKUP = re.compile(r"<[^<>]*>|\S+://\S+")  # tags and addresses
WORD = r"(?u)[^\W\d_][^\W\d_'’-]*[^\W\d_]"


def find_clusters(embedding: Array) -> Array | None:
    """Find the clusters of a map by their density.

    Parameters
    ----------
    embedding : array of shape (n, 2) or (n, 3)

    Returns
    -------
    array of shape (n,) of int64, or None
        The cluster of each point, numbered by size; -1 for points between clusters. None if there are fewer than two.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Y = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 20])
    >>> find_clusters(Y)[[0, 99]].tolist()
    [0, 1]
    """
    n = len(embedding)
    if n < FEWEST_POINTS:
        return None
    ids = evenly_spaced_ids(n, SAMPLE)
    found = _cluster(embedding[ids])
    if found is None:
        return None
    if len(ids) < n:
        from scipy.spatial import cKDTree

        found = found[cKDTree(embedding[ids]).query(embedding)[1]]
    order = np.argsort(-np.bincount(found[found >= 0]), kind="stable")
    by_size = np.append(np.argsort(order), -1)  # noise stays -1
    numbered: Array = by_size[found]
    return numbered


def _cluster(points: Array) -> Array | None:
    """HDBSCAN, with larger clusters if there are too many. A map that is mostly noise has no clusters."""
    from sklearn.cluster import HDBSCAN

    size, neighbors = max(SMALLEST, round(SMALLEST_SHARE * len(points))), min(MIN_SAMPLES, max(5, len(points) // 30))
    while True:
        model = HDBSCAN(min_cluster_size=size, min_samples=neighbors, copy=True)
        found: Array = model.fit_predict(np.asarray(points, dtype=np.float64)).astype(np.int64)
        count = int(found.max()) + 1
        if count <= MAX_CLUSTERS:
            return found if count > 1 and float((found < 0).mean()) <= MAX_NOISE else None
        size *= 2


def name_clusters(
    codes: Array, count: int, texts: Sequence[Array], features: Array | None, feature_names: Sequence[str]
) -> list[str]:
    """Name every cluster by its most telling words, or else by its most telling features, or else by its number.

    Parameters
    ----------
    codes : array of shape (n,)
        Cluster of each row; -1 for noise.
    count : int
        Number of clusters.
    texts : sequence of arrays of shape (n,)
        Columns of texts.
    features : array of shape (n, d), or None
        Numbers; NaN where missing.
    feature_names : sequence of str
        Names of the d features.

    Returns
    -------
    list of str
        Different names, one for each cluster.

    Examples
    --------
    >>> codes = np.repeat([0, 1], 30)
    >>> texts = [np.array(["a quick fox"] * 30 + ["the lazy dog"] * 30)]
    >>> name_clusters(codes, 2, texts, None, [])
    ['fox, quick', 'dog, lazy']
    >>> name_clusters(codes, 2, [], np.repeat([[1.0], [7.0]], 30, axis=0), ["petal length"])
    ['low petal length', 'high petal length']
    """
    words = telling_words(codes, count, texts) if texts else [[]] * count
    traits = telling_features(codes, count, features, feature_names) if features is not None else [[]] * count
    names = [_joined(words[i]) or _joined(traits[i]) or f"cluster {i + 1}" for i in range(count)]
    return _distinct(names)


def telling_words(codes: Array, count: int, texts: Sequence[Array]) -> list[list[str]]:
    """The words that are more frequent in each cluster than elsewhere, most telling first.

    The log-odds of a word, inside against outside, are divided by their standard error, with a prior from all rows: Monroe,
    Colaresi and Quinn, "Fightin' Words", 2008.
    """
    found = _words_in_rows(texts)
    if found is None:
        return [[]] * count
    presence, words = found
    total = np.asarray(presence.sum(0), dtype=np.float64).ravel()
    prior, rows = 1.0 + total / total.sum(), len(codes)
    chosen = []
    for code in range(count):
        member = codes == code
        size = int(member.sum())
        inside = np.asarray(presence[member].sum(0), dtype=np.float64).ravel()
        outside = total - inside
        odds = np.log((inside + prior) / (size - inside + 1)) - np.log((outside + prior) / (rows - size - outside + 1))
        z = odds / np.sqrt(1 / (inside + prior) + 1 / (outside + prior))
        z[(inside < FREQUENT * size) | (odds < LIFT)] = 0
        best = [words[i] for i in np.argsort(-z, kind="stable")[: 4 * WORDS] if z[i] > TELLING_WORD]
        chosen.append(_without_repeats(best)[:WORDS])
    return chosen


def _words_in_rows(texts: Sequence[Array]) -> tuple[Any, Array] | None:
    """Which row has which word, as a sparse matrix, and the words."""
    from sklearn.feature_extraction.text import CountVectorizer

    rows = (" \n ".join(str(text)[:MAX_CHARACTERS] for text in row) for row in zip(*texts, strict=True))
    reader = CountVectorizer(binary=True, token_pattern=WORD, stop_words="english", min_df=3, max_df=0.6, max_features=20_000)
    try:
        presence = reader.fit_transform(MARKUP.sub(" ", row) for row in rows)
    except ValueError:  # no word occurs in three rows
        return None
    return presence.tocsr(), reader.get_feature_names_out()


def _without_repeats(words: list[str]) -> list[str]:
    """Leave out other forms of a word, such as its plural."""
    kept: list[str] = []
    for word in words:
        if not any(word.startswith(other) or other.startswith(word) for other in kept):
            kept.append(word)
    return kept


def telling_features(codes: Array, count: int, features: Array, names: Sequence[str]) -> list[list[str]]:
    """The features whose values in each cluster are high, low or medium compared with all rows, most telling first.

    A feature is judged by ranks: 2 · |AUC - 1/2| for high and low, and by how little the ranks spread for medium.
    """
    ranks = _relative_ranks(features)
    members = [codes == code for code in range(count)]
    means = np.array([ranks[member].mean(0) if member.any() else ranks.mean(0) for member in members])
    lowest, reach = means.min(0), np.maximum(np.ptp(means, axis=0), 1e-9)
    chosen: list[list[str]] = []
    for member, mean in zip(members, means, strict=True):
        if not member.any() or member.all():
            chosen.append([])
            continue
        position = (mean - lowest) / reach
        is_medium = (position > MEDIUM[0]) & (position < MEDIUM[1])
        different = 2 * np.abs(mean - ranks[~member].mean(0))  # 2 · |AUC - 1/2|
        score = np.where(is_medium, 1 - ranks[member].std(0) / UNIFORM_SPREAD, different)
        words = np.where(is_medium, "medium", np.where(position > 0.5, "high", "low"))
        best = [i for i in np.argsort(-score, kind="stable")[:50].tolist() if score[i] > TELLING_FEATURE]
        chosen.append([f"{words[i]} {names[i]}" for i in _different(ranks, best)])
    return chosen


def _relative_ranks(features: Array) -> Array:
    """Ranks from 0 to 1; equal values share their mean rank, and missing ones are in the middle."""
    from scipy.stats import rankdata

    ranks: Array = rankdata(features, axis=0, nan_policy="omit")
    known = np.isfinite(features)
    shares: Array = np.where(known, (ranks - 0.5) / np.maximum(known.sum(0), 1), 0.5)
    return shares


def _different(ranks: Array, candidates: list[int]) -> list[int]:
    """The first features, without those that follow another one closely."""
    kept: list[int] = []
    for i in candidates:
        if len(kept) < FEATURES and not any(abs(_correlation(ranks[:, i], ranks[:, j])) > ALIKE for j in kept):
            kept.append(i)
    return kept


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b) / max(float(np.sqrt((a @ a) * (b @ b))), 1e-300)


def _joined(parts: list[str]) -> str:
    """As many parts as fit into a name; the first one is cut if it is too long."""
    name = parts[0] if parts else ""
    if len(name) > MAX_NAME:
        return f"{name[: MAX_NAME - 1].rstrip()}…"
    for part in parts[1:]:
        if len(name) + len(part) + 2 <= MAX_NAME:
            name = f"{name}, {part}"
    return name


def _distinct(names: list[str]) -> list[str]:
    """Number the clusters that would have the same name."""
    count, seen = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name} ({seen[name]})" if count[name] > 1 else name)
    return numbered
