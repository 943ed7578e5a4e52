"""The metrics as their definitions read: plain loops over rows, ties in the order of (distance, index); and hard data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

Array = np.ndarray[Any, Any]
Table = list[list[Any]]


def squared_distances(rows: Array, others: Array | None = None) -> Table:
    """From the differences, in float64; whole numbers stay whole, so that ties are exact."""
    kind = np.int64 if np.asarray(rows).dtype.kind in "iu" else np.float64
    a = np.asarray(rows).astype(kind)
    b = a if others is None else np.asarray(others).astype(kind)
    return [((b - row) ** 2).sum(1).tolist() for row in a]


def neighbors(rows: Array) -> list[list[int]]:
    """The others of each row, nearest first."""
    table = squared_distances(rows)
    return [sorted((j for j in range(len(table)) if j != i), key=lambda j: (table[i][j], j)) for i in range(len(table))]


def ranks(rows: Array) -> list[dict[int, int]]:
    """The rank of each other among the others of a row: 1 for the nearest."""
    return [{j: place for place, j in enumerate(order, start=1)} for order in neighbors(rows)]


def trustworthiness(X: Array, Y: Array, k: int = 7) -> float:
    return float(np.mean(trustworthiness_of_points(X, Y, k)))


def trustworthiness_of_points(X: Array, Y: Array, k: int = 7) -> list[float]:
    n, rank, near = len(X), ranks(X), neighbors(Y)
    values = []
    for i in range(n):
        beyond = 0
        for j in near[i][:k]:
            if rank[i][j] > k:
                beyond += rank[i][j] - k
        values.append(1 - 2 * beyond / (k * (2 * n - 3 * k - 1)))
    return values


def continuity(X: Array, Y: Array, k: int = 7) -> float:
    return trustworthiness(Y, X, k)


def nearest_neighbor(Y: Array, labels: Sequence[Any], reference: tuple[Array, Sequence[Any]] | None = None) -> float:
    hits = 0
    if reference is None:
        for i, near in enumerate(neighbors(Y)):
            hits += labels[near[0]] == labels[i]
        return hits / len(Y)
    embedding, known = reference
    for i, row in enumerate(squared_distances(Y, embedding)):
        hits += known[min(range(len(embedding)), key=lambda j, row=row: (row[j], j))] == labels[i]
    return hits / len(Y)


def neighborhood_hit(Y: Array, labels: Sequence[Any], k: int = 7, protocol: str = "standard") -> float:
    hits = 0
    for i, near in enumerate(neighbors(Y)):
        for j in [i, *near][:k] if protocol == "paper" else near[:k]:
            hits += labels[j] == labels[i]
    return hits / (len(Y) * k)


def pairs(rows: Array) -> list[Any]:
    """The squared distances of all pairs i < j."""
    table = squared_distances(rows)
    return [table[i][j] for i in range(len(table)) for j in range(i + 1, len(table))]


def mean_ranks(values: Sequence[Any]) -> Array:
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(sorted(values), start=1):
        places.setdefault(value, []).append(place)
    return np.array([sum(places[value]) / len(places[value]) for value in values])


def shepard_goodness(X: Array, Y: Array) -> float:
    a, b = (mean_ranks(pairs(rows)) for rows in (X, Y))
    a, b = a - a.mean(), b - b.mean()
    both = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / both if both else float("nan")


def normalized_stress(X: Array, Y: Array, protocol: str = "standard") -> float:
    D, d = ([float(value) ** 0.5 for value in pairs(rows)] for rows in (X, Y))
    if protocol == "paper":
        D, d = _from_0_to_1(D), _from_0_to_1(d)
    difference = sum((a - b) ** 2 for a, b in zip(D, d, strict=True))
    whole = sum(a**2 for a in D)
    return (difference / whole) ** 0.5 if whole else float("nan")


def _from_0_to_1(values: list[float]) -> list[float]:
    least, most = min(values), max(values)
    return [(value - least) / (most - least) if most > least else 0.0 for value in values]


def neighbor_recall(X: Array, Y: Array, k: int) -> list[float]:
    high, low = neighbors(X), neighbors(Y)
    return [float(np.mean([len(set(a[:m]) & set(b[:m])) / m for a, b in zip(high, low, strict=True)])) for m in range(1, k + 1)]


class Case(NamedTuple):
    X: Array
    Y: Array
    labels: Array


def normal(n: int = 130, seed: int = 0, columns: int = 2) -> Case:
    """Rows without ties, a map that has something to do with them, and labels that have something to do with the map."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    Y = X[:, :columns] + 0.5 * rng.normal(size=(n, columns))
    return Case(X, Y, np.where(Y[:, 0] > 0.5, 2, np.where(X[:, 1] > 0, 1, 0)))


def digits(n: int = 150) -> Case:
    """Whole numbers, full of ties, and so is the map; which also has many in one place."""
    bunch = load_digits()
    X = bunch.data[:n].astype(np.int64)
    centered = X - X.mean(0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    Y = np.round(centered @ axes.T / 3).astype(np.int64)
    return Case(X, Y, bunch.target[:n])


def with_duplicates() -> Case:
    X, Y, labels = normal(120, 1)
    return Case(np.tile(X[:30], (4, 1)), np.repeat(Y[:40], 3, axis=0), labels)


def with_an_outlier() -> Case:
    X, Y, labels = normal(130, 2)
    X[3, 2], Y[77, 1] = 1e4, 1e4
    return Case(X, Y, labels)


def _cases() -> dict[str, Case]:
    X, Y, labels = normal()
    return {
        "normal": normal(),
        "digits": digits(),
        "duplicates": with_duplicates(),
        "a map in one place": Case(X, np.full_like(Y, 0.1), labels),
        "rows in one place": Case(np.full_like(X, 0.1), Y, labels),
        "far from the origin": Case(X + 1e3, Y - 1e3, labels),
        "an outlier": with_an_outlier(),
        "tiny": Case(1e-8 * X, 1e-8 * Y, labels),
        "float32": Case(X.astype(np.float32), Y.astype(np.float32), labels),
        "float32, far from the origin": Case((X + 1e3).astype(np.float32), (Y + 1e3).astype(np.float32), labels),
        "one column": normal(130, 3, columns=1),
        "three columns": normal(130, 4, columns=3),
        "six columns": normal(130, 5, columns=6),
    }


CASES = _cases()


def moved(Y: Array, angle: float, mirrored: bool, shift: tuple[float, float]) -> Array:
    """A map of two columns, turned, mirrored and shifted."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (Y * [1, -1] if mirrored else Y) @ turn.T + shift
