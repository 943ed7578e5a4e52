"""Fit several methods to the same training rows and score them on the same held-out rows."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse

from dre.baselines import NAMES, options_of
from dre.compare.comparison import Comparison
from dre.compare.data_warnings import data_warnings, without_data_warnings
from dre.compare.measure import Measurement, Scoring, measure
from dre.data.metric import row_metric
from dre.data.validation import check_array, check_memory, check_number
from dre.datasets import Dataset, DatasetSplit
from dre.metrics.inputs import check_same_index, complete_labels
from dre.notation import unknown
from dre.plot.colors import is_continuous
from dre.plot.scatter import name_of
from dre.progress.activity import activity
from dre.runtime import resolve_device

Array = np.ndarray[Any, Any]
# Default methods and the library that each needs. All are quick on a CPU and embed new rows.
DEFAULT_METHODS = {"pca": None, "umap": "umap", "open-tsne": "openTSNE", "dre": None}
MIN_ROWS = 15  # of each part: scores look at 7 neighbors and need as many other rows


def default_methods() -> list[str]:
    """Return the default methods that are installed."""
    return [name for name, library in DEFAULT_METHODS.items() if library is None or find_spec(library) is not None]


def compare(
    X: Any,
    labels: Any = None,
    *,
    label_name: str | None = None,
    methods: Sequence[str] | None = None,
    test_size: float = 0.25,
    metric: str = "euclidean",
    standardize: bool = False,
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
    device: str = "auto",
    log: Callable[[str], None] | None = None,
) -> Comparison:
    """Fit methods to the same training rows of X and score their embeddings of the same held-out rows.

    A method that fails is listed with the reason, and the others go on. For methods with recursions the embedding before the
    first recursion is shown too.

    Parameters
    ----------
    X : array-like, sparse matrix or Rows
        Vectors (n, d) or images.
    labels : array-like of shape (n,), optional
        Class labels. Dates, and fractional numbers with many distinct values, become colors and are not scored.
    label_name : str, optional
        Title of the legend. Default: the name of a pandas Series.
    methods : sequence of str, optional
        Names of ``dre.baselines``. Default: pca, umap, open-tsne and dre, if installed.
    test_size : float, default=0.25
        Share of the rows to hold out.
    metric : str, default="euclidean"
        Distance between rows, a name of ``dre.data.metric.METRICS``, for the scores and for the methods that take one: DRE,
        UMAP and openTSNE. The others read the rows as they are.
    standardize : bool, default=False
        Standardize each column for all methods alike, with mean and standard deviation of the training rows. For columns in
        different units. Scores compare the embeddings with the standardized rows.
    feature_names : sequence of str, optional
        Names of the columns in warnings. Default: those of a DataFrame.
    random_state : int, default=0
        Seed of the split and of every method.
    device : str, default="auto"
        Where networks are trained.
    log : callable, optional
        Receives progress messages.

    Returns
    -------
    Comparison
        Prints as a table; ``to_records()`` gives the scores, ``figure()`` the embeddings side by side.

    Raises
    ------
    ValueError
        If the input can't be split or scored, or if every method fails.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 9))
    >>> X[:50, :2] += 20
    >>> result = compare(X, ["left"] * 50 + ["right"] * 50, methods=["pca"])
    >>> result.to_records()[0]["nearest_neighbor"] > 0.9
    True
    """
    names = check_methods(default_methods() if methods is None else methods)
    measured = row_metric(metric)
    measured.check_standardize(standardize)
    if measured.is_precomputed:
        raise ValueError("metric='precomputed': methods are compared on rows of features; pass these, and their metric")
    resolve_device(device)
    dataset = split(X, labels, test_size, random_state)
    if standardize:
        dataset = standardized(dataset)
    names_in = feature_names if feature_names is not None else getattr(X, "columns", None)
    for text in data_warnings(dataset.train.rows, None if names_in is None else [str(name) for name in names_in]):
        warnings.warn(text, stacklevel=2)
    start = time.perf_counter()

    def report(text: str) -> None:
        if log is not None:
            log(f"{time.perf_counter() - start:7.1f} s  {text}")

    how: dict[str, Any] = {"random_state": random_state, "device": device, "scoring": Scoring(metric=measured)}
    results: dict[str, Measurement] = {}
    failed: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        report(f"fitting {name} ({position} of {len(names)})")
        try:
            with without_data_warnings(), activity(f"fitting {name} ({position} of {len(names)})"):
                results[name] = measure(name, dataset, options=_metric_option(name, metric), **how)
        except Exception as problem:
            if os.environ.get("DRE_DEBUG"):
                raise
            failed[name] = _reason(problem)
            report(f"{name} failed: {failed[name]}")
    if not results:
        raise ValueError("\n    ".join(["every method failed:", *(f"{name}: {reason}" for name, reason in failed.items())]))
    report("done")
    return Comparison(dataset, results, failed, name_of(labels, label_name) or "")


def _metric_option(method: str, metric: str) -> dict[str, str]:
    """The metric as an option of the methods that take one; the Euclidean is the default of all."""
    return {"metric": metric} if metric != "euclidean" and "metric" in options_of(method) else {}


def check_methods(names: Sequence[str]) -> list[str]:
    """Return the names without repetition; raise ``ValueError`` for an unknown one."""
    unique = list(dict.fromkeys([names] if isinstance(names, str) else names))
    if not unique:
        raise ValueError(f"no method to compare; known: {', '.join(NAMES)}")
    for name in unique:
        if name not in NAMES:
            raise ValueError(unknown("method", name, list(NAMES)))
    return unique


def split(X: Any, labels: Any, test_size: float, random_state: int) -> Dataset:
    """Split into training and test rows, stratified by class where the classes are large enough."""
    from sklearn.model_selection import train_test_split

    rows = check_array(X, "X")
    check_same_index(X=X, labels=labels)
    n = rows.shape[0]
    check_split(test_size, n)
    if scipy.sparse.issparse(rows):
        check_memory(rows, "X", rows.dtype)
        rows = rows.toarray()
    known = np.zeros(n, int) if labels is None else _check_labels(labels, n)
    are_classes = labels is not None and not is_continuous(known)
    stratify = known if are_classes and _can_stratify(known, test_size) else None
    halves = train_test_split(np.arange(n), test_size=test_size, random_state=random_state, stratify=stratify)
    parts = [DatasetSplit(rows[ids], known[ids], {"label": known[ids]} if are_classes else {}) for ids in halves]
    return Dataset("data", "data", parts[0], parts[1], "")


def standardized(dataset: Dataset) -> Dataset:
    """Standardize the columns of both parts by the training rows; a constant column becomes 0."""
    from sklearn.preprocessing import StandardScaler

    train, test = dataset.train, dataset.test
    if train.rows.ndim != 2:
        raise ValueError(
            f"standardize=True needs columns, but X has rows of shape {train.rows.shape[1:]}: flatten them, or leave it out"
        )
    scaler = StandardScaler().fit(train.rows)
    parts = [replace(part, rows=scaler.transform(part.rows)) for part in (train, test)]
    return replace(dataset, train=parts[0], test=parts[1])


def check_split(test_size: Any, n: int) -> None:
    """Raise ``ValueError`` if n rows can't be split so that both parts can be scored."""
    if test_size is None or not 0 < check_number("test_size", test_size) < 1:
        raise ValueError(f"test_size={test_size!r}: expected the share of rows to hold out, between 0 and 1, such as 0.25")
    held_out = math.ceil(test_size * n)  # scikit-learn's rounding
    if min(held_out, n - held_out) < MIN_ROWS:
        raise ValueError(
            f"X has {n} rows: test_size={test_size:g} leaves {n - held_out} to fit and {held_out} to score, and both must "
            f"be at least {MIN_ROWS}; pass more rows" + (", or test_size=0.5" if n >= 2 * MIN_ROWS else "")
        )


def _check_labels(labels: Any, n: int) -> Array:
    shape = np.shape(labels)
    if len(shape) == 1 and shape[0] != n:
        raise ValueError(f"there are {shape[0]} labels, but X has {n} rows: pass one label per row")
    return complete_labels(labels, n, "labels")


def _can_stratify(labels: Array, test_size: float) -> bool:
    _, counts = np.unique(labels, return_counts=True)
    return bool(counts.min() >= 2 and len(counts) <= min(test_size, 1 - test_size) * len(labels))


def _reason(problem: Exception) -> str:
    """The first line of the message, after the error's type where the message alone says little."""
    text = next((line.strip() for line in str(problem).splitlines() if line.strip()), "")
    if text and isinstance(problem, ValueError | ImportError | NotImplementedError | OSError | RuntimeError):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
