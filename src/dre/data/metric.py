"""Metrics between rows: those with a transform of the rows, those that compare rows in blocks, and functions of the user.

After a transform the Euclidean distance orders pairs as the metric does, so that searches and networks need no other distance:

========================  =====================================  ==========================================
metric                    transform of a row x                   Euclidean distance d of two transformed rows
========================  =====================================  ==========================================
``"euclidean"``           x                                      the metric itself
``"cosine"``              x / |x|                                d² = 2 · (1 - cosine similarity)
``"correlation"``         (x - mean(x)) / |x - mean(x)|          d² = 2 · (1 - Pearson correlation)
========================  =====================================  ==========================================

The others have none. They say which rows are neighbors, and a network reads the rows as they are.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.exceptions import DataConversionWarning
from torch import Tensor

from dre.notation import unknown

Array = np.ndarray[Any, Any]
ROUNDING = 16  # of the last bit of a mean
EXACT_COUNTS = 2**24  # up to which float32 holds whole numbers
PRECOMPUTED = "precomputed"
COST_OF_POWER = 34.0  # of minkowski, unless p is 1 or 2, which need no power


@dataclass(frozen=True)
class MetricKind:
    """What is known about a metric by its name."""

    transforms: bool = False  # whether a transform of the rows makes it Euclidean
    scipy: str = ""  # name in scipy.spatial.distance.cdist
    keywords: tuple[str, ...] = ()  # that metric_kwds may have
    boolean: bool = False  # whether it asks of a value only if it is zero
    unitless: bool = False  # whether each column counts as much as any other, whatever its unit
    cost: float = 1.0  # time to compare a value, as a multiple of manhattan's, measured on 384 columns


METRICS: dict[str, MetricKind] = {
    "euclidean": MetricKind(transforms=True),
    "cosine": MetricKind(transforms=True),
    "correlation": MetricKind(transforms=True),
    "manhattan": MetricKind(scipy="cityblock", keywords=("w",)),
    "chebyshev": MetricKind(scipy="chebyshev"),
    "minkowski": MetricKind(scipy="minkowski", keywords=("p", "w")),
    "canberra": MetricKind(scipy="canberra", keywords=("w",), unitless=True, cost=2.0),
    "braycurtis": MetricKind(scipy="braycurtis", keywords=("w",), cost=1.5),
    "hamming": MetricKind(scipy="hamming", keywords=("w",), unitless=True),
    "jaccard": MetricKind(keywords=("w",), boolean=True, cost=0.25),
    PRECOMPUTED: MetricKind(),
}
SYNONYMS = {  # names of other libraries
    **dict.fromkeys(("cityblock", "l1", "taxicab"), "manhattan"),
    **dict.fromkeys(("l2", "sqeuclidean"), "euclidean"),
    **dict.fromkeys(("infinity", "linf", "linfinity", "linfty"), "chebyshev"),
}
MetricLike = Any  # the name of a metric, a function of two vectors that returns their distance, or a RowMetric
TRANSFORMS = tuple(name for name, kind in METRICS.items() if kind.transforms)


@dataclass(frozen=True, eq=False)
class RowMetric:
    """A distance between rows: a name with its keywords, or a function of two vectors.

    Parameters
    ----------
    name : str
        One of ``METRICS``; that of a function is its own.
    kwds : mapping of str to value
    function : callable, optional
        ``function(x, y, **kwds)`` returns a number.

    Examples
    --------
    >>> metric = row_metric("minkowski", {"p": 1})
    >>> print(metric, metric.between(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])))
    minkowski(p=1) [[7.]]
    """

    name: str
    kwds: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    _lock: Any = field(default_factory=Lock, repr=False)  # a function need not be ready for several threads

    @property
    def kind(self) -> MetricKind:
        return MetricKind() if self.function is not None else METRICS[self.name]

    @property
    def has_transform(self) -> bool:
        return self.kind.transforms

    @property
    def transform(self) -> str:
        """The metric by which rows are transformed: this one, or the Euclidean, which leaves them as they are."""
        return self.name if self.has_transform else "euclidean"

    @property
    def is_precomputed(self) -> bool:
        return self.function is None and self.name == PRECOMPUTED

    @property
    def cost(self) -> float:
        """Time to compare a value of two rows, as a multiple of manhattan's."""
        return COST_OF_POWER if self.kwds.get("p", 2) not in (1, 2) and self.function is None else self.kind.cost

    def __str__(self) -> str:
        kwds = ", ".join(f"{name}={value if isinstance(value, Real) else '…'}" for name, value in self.kwds.items())
        return f"{self.name}({kwds})" if kwds else self.name

    def check_standardize(self, standardize: bool) -> None:
        """Raise a ValueError if columns are to be standardized of which the metric does not read the size."""
        if standardize and (self.kind.boolean or self.is_precomputed):
            what = "asks whether values are zero" if self.kind.boolean else "has no columns with units"
            raise ValueError(f"standardize=True: the metric {self} {what}. Leave standardize out.")

    def prepare(self, rows: Any) -> Any:
        """Return rows (n, ...) as ``between`` reads them: vectors, of booleans where the metric asks for no more.

        Values other than 0 and 1 become booleans with scikit-learn's warning.
        """
        rows = rows if scipy.sparse.issparse(rows) else np.asarray(rows).reshape(len(rows), -1)
        weights = self.kwds.get("w") if self.function is None else None
        if weights is not None and len(weights) != rows.shape[1]:
            raise ValueError(
                f"metric_kwds['w'] has {len(weights)} weights for rows of {rows.shape[1]} values: pass one for each"
            )
        if not self.kind.boolean:
            return rows
        values = rows.data if scipy.sparse.issparse(rows) else rows
        if values.dtype != bool and bool(((values != 0) & (values != 1)).any()):
            text = f"values were converted to boolean for the metric {self.name}: all but 0 count as True"
            warnings.warn(text, DataConversionWarning, stacklevel=3)
        return rows.astype(bool) if scipy.sparse.issparse(rows) else rows != 0

    def between(self, a: Any, b: Any) -> Array:
        """Return the distances (m, w), float64, between all rows of a (m, d) and of b (w, d), which were prepared."""
        if self.kind.boolean:
            return _jaccard(a, b, self.kwds.get("w"))
        a, b = (each.toarray() if scipy.sparse.issparse(each) else each for each in (a, b))
        if self.function is not None:
            with self._lock:
                return self._as_numbers([[self.function(x, y, **self.kwds) for y in b] for x in a], (len(a), len(b)))
        from scipy.spatial.distance import cdist

        found: Array = cdist(a, b, self.kind.scipy, **self.kwds)
        return np.nan_to_num(found, copy=False, nan=0.0, posinf=np.inf)  # 0/0 of Bray-Curtis: two rows of zeros are equal

    def _as_numbers(self, returned: list[list[Any]], shape: tuple[int, int]) -> Array:
        """Return what the function returned as an array of numbers, or raise a ValueError if it returned something else."""
        try:
            found = np.array(returned, np.float64)
        except (TypeError, ValueError):  # texts, complex numbers, or arrays of different shapes
            found = np.full(shape, np.nan)
        if found.size == shape[0] * shape[1] and not np.isnan(found).any():  # a NaN may have been None
            return found.reshape(shape)
        others = [value for row in returned for value in row if not _is_number(value)]
        if not others:
            return found.reshape(shape)
        value = others[0]
        what = f"an array of the shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise ValueError(f"the function {self} returned {what} for two rows: return their distance, one number")


def row_metric(metric: Any, kwds: Mapping[str, Any] | None = None) -> RowMetric:
    """Return a name or a function, and its keywords, as one object; one that is an object already stays as it is.

    Raises
    ------
    ValueError
        For an unknown metric, or keywords that it does not take.

    Examples
    --------
    >>> row_metric("cosine").has_transform, row_metric("canberra").has_transform
    (True, False)
    """
    if isinstance(metric, RowMetric):
        return metric
    if kwds is not None and not (isinstance(kwds, Mapping) and all(isinstance(name, str) for name in kwds)):
        raise TypeError(f"metric_kwds={kwds!r}: expected a dict, such as {{'p': 3}}")
    kwds = dict(kwds or {})
    if callable(metric):
        name = getattr(metric, "__name__", type(metric).__name__)
        _check_signature(metric, name, kwds)
        return RowMetric(name, kwds, metric)
    if metric is None:
        raise ValueError(
            f"metric=None: expected {', '.join(METRICS)}, or a function. A model that was saved with a function of your own "
            "does not hold it: pass it again, set_params(metric=function)"
        )
    check_metric(metric)
    known = METRICS[metric].keywords
    for name in kwds:
        if name not in known:
            takes = f"takes {' and '.join(known)}" if known else "takes none"
            raise ValueError(f"metric_kwds has {name!r}, but the metric {metric} {takes}")
    return RowMetric(metric, {name: _check_keyword(name, value) for name, value in kwds.items()})


def _check_signature(function: Callable[..., Any], name: str, kwds: Mapping[str, Any]) -> None:
    """Raise a ValueError if a function can't be called with two rows and these keywords."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions compiled from C may have none
        return
    try:
        signature.bind(None, None, **kwds)
    except TypeError as problem:
        given = f"two rows and metric_kwds with {', '.join(map(repr, kwds))}" if kwds else "two rows, without metric_kwds"
        raise ValueError(
            f"the function {name}{signature} can't take {given}: {problem}. "
            "It takes two rows by position, and all else from metric_kwds by name."
        ) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf")


def _check_keyword(name: str, value: Any) -> Any:
    if name == "p":
        if isinstance(value, bool) or not isinstance(value, Real) or not 1 <= float(value) < np.inf:
            raise ValueError(f"metric_kwds['p']={value!r}: expected a number from 1 up; chebyshev is its limit")
        number = float(value)
        return int(number) if number.is_integer() else number
    weights = np.asarray(value, np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("metric_kwds['w']: expected one weight for each column, finite and not negative, and not all 0")
    return weights


def check_metric(metric: Any) -> str:
    """Return the name of a metric, or raise a ValueError that lists the known ones."""
    if not isinstance(metric, str) or metric not in METRICS:
        text = unknown("metric", str(metric), list(METRICS))
        if str(metric) in SYNONYMS:
            text = (
                f"{text.split('. Did you mean')[0].rstrip('.')}. Use {SYNONYMS[str(metric)]!r}, which has the same neighbors."
            )
        raise ValueError(text)
    return metric


def check_transform(metric: str) -> str:
    """Return the name of a metric that has a transform, or raise a ValueError that lists those."""
    if metric not in TRANSFORMS:
        raise ValueError(unknown("metric with a transform", str(metric), list(TRANSFORMS)))
    return metric


def transform_rows(x: Tensor, metric: str) -> Tensor:
    """Transform rows so that their Euclidean distances order pairs as ``metric`` does.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        Rows as they were given, not centered: centering would change what an angle means.
    metric : {"euclidean", "cosine", "correlation"}

    Returns
    -------
    Tensor of the same shape. A row without a direction (all zeros, or constant under ``"correlation"``) becomes zero.

    Examples
    --------
    >>> transform_rows(torch.tensor([[3.0, 4.0]]), "cosine")
    tensor([[0.6000, 0.8000]])
    """
    if metric == "euclidean":
        return x
    flat = x.flatten(1)
    if metric == "correlation":
        mean = flat.mean(1, keepdim=True)
        centered = flat - mean
        # What is left of equal values is rounding, and no direction.
        rounding = ROUNDING * torch.finfo(centered.dtype).eps * mean.abs()
        flat = torch.where(centered.abs().amax(1, keepdim=True) > rounding, centered, 0.0)
    largest = flat.abs().amax(1, keepdim=True)
    flat = flat / torch.where(largest > 0, largest, 1.0)  # squares can't overflow or vanish
    norm = flat.norm(dim=1, keepdim=True)
    return (flat / torch.where(norm > 0, norm, 1.0)).reshape(x.shape)


def _jaccard(a: Any, b: Any, w: Array | None) -> Array:
    """1 - |a ∩ b| / |a ∪ b| of rows of booleans, by a product that counts what they share; equal if both are empty."""
    dtype = np.float64 if w is not None or a.shape[1] > EXACT_COUNTS else np.float32
    a, b = a.astype(dtype), b.astype(dtype)
    weighted = a if w is None else a.multiply(w[None, :]).tocsr() if scipy.sparse.issparse(a) else a * w
    shared = weighted @ b.T
    shared = np.asarray(shared.toarray() if scipy.sparse.issparse(shared) else shared, np.float64)
    of_a = np.asarray(weighted.sum(1), np.float64).reshape(-1, 1)
    of_b = np.asarray(b.sum(1) if w is None else b @ w, np.float64).reshape(1, -1)
    union = of_a + of_b - shared
    found: Array = np.divide((union - shared).clip(0), union, out=np.zeros_like(union), where=union > 0)
    return found
