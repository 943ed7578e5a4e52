"""Validation and conversion of the metrics' inputs: rows, embeddings and labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.distance_matrix import check_distances
from dre.data.metric import RowMetric, row_metric, transform_rows
from dre.data.validation import check_array, check_memory
from dre.neighbors.metric_distances import MetricDistances
from dre.progress.display import say
from dre.runtime import resolve_device
from dre.runtime.caller import level_of_caller

Array = np.ndarray[Any, Any]
Device = str | torch.device
Space = Tensor | MetricDistances  # points between which distances are Euclidean, or the distances themselves
MAX_PADDED = 2**26  # characters of texts that are padded to the longest
HIGH, LOW = "high", "low"  # the space of the rows, and that of their embedding


def as_points(rows: Any, name: str, device: Device = "auto") -> Tensor:
    """Convert rows of any kind to a tensor (n, d): float32 stays float32, any other dtype becomes float64."""
    target = resolve_device(device)
    if target.type not in ("cpu", "cuda"):
        raise ValueError(f"device={str(target)!r} may lack float64, which the metrics need; use device='cpu' or 'cuda'")
    if len(np.shape(rows)) == 1 and not scipy.sparse.issparse(rows):
        hint = "; labels come after Y" if name == "Y" else ""
        raise ValueError(f"{name} has the shape {np.shape(rows)}; expected rows with columns, (n, d){hint}")
    if _is_on(rows, target) and rows.dtype in (torch.float32, torch.float64) and rows.ndim > 1 and rows.numel():
        points: Tensor = rows.detach()
        if not bool(points.isfinite().all()):
            check_array(rows, name)
    else:
        values = check_array(rows, name)
        dtype = np.float32 if values.dtype == np.float32 else np.float64
        if scipy.sparse.issparse(values):
            check_memory(values, name, dtype)
            values = values.toarray()
        points = torch.as_tensor(np.ascontiguousarray(values, dtype=dtype)).to(target)
    return points.reshape(len(points), -1)


def _is_on(rows: Any, device: torch.device) -> bool:
    return isinstance(rows, Tensor) and rows.device.type == device.type and device.index in (None, rows.device.index)


def embedding_space(Y: Any, device: Device = "auto") -> dict[str, Tensor]:
    """Return the embedding alone, for metrics that do not read X."""
    return {LOW: as_points(Y, "Y", device)}


def paired_spaces(
    X: Any,
    Y: Any,
    device: Device = "auto",
    *,
    metric: Any = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    names: tuple[str, str] = ("X", "Y"),
) -> dict[str, Any]:
    """Return the rows, transformed for ``metric``, and their embedding on one device; Y may take the place of X too.

    Distances of a metric without a transform stand in for the rows; they, and with them all scores, are computed on the CPU.
    """
    measured = row_metric(metric, metric_kwds)
    check_same_index(**dict(zip(names, (X, Y), strict=True)))
    high: Space
    if measured.has_transform:
        high = as_points(X, names[0], device)
    else:
        if resolve_device(device).type != "cpu" and device != "auto":
            say(f"dre: {measured} distances are computed on the CPU")
        high = _distances(X, names[0], measured)
    low = as_points(Y, names[1], high.device)
    if high.shape[0] != len(low):
        a, b = names
        raise ValueError(f"{a} has {high.shape[0]} rows and {b} has {len(low)}; row i must be the same sample in both")
    if len(low) < 3:
        raise ValueError(f"{len(low)} rows are too few to compare distances; pass at least 3")
    return {HIGH: transform_rows(high, measured.name) if isinstance(high, Tensor) else high, LOW: low}


def _distances(X: Any, name: str, metric: RowMetric) -> MetricDistances:
    """Distances between rows; those of a function, whose calls take long, are computed once and held."""
    rows = check_array(X, name, are_distances=metric.is_precomputed)
    if metric.is_precomputed:
        if scipy.sparse.issparse(rows):
            raise ValueError(f"{name} is sparse: scores compare all pairs of rows. Pass all their distances, (n, n)")
        rows = check_distances(rows, name)
    found = MetricDistances.of(rows, metric)
    return found if metric.function is None else found.held()


def check_same_index(**arrays: Any) -> None:
    """Refuse pandas objects whose indices hold the same names in different orders: rows are matched by position."""
    indexed = [(name, rows.index) for name, rows in arrays.items() if hasattr(rows, "index") and hasattr(rows.index, "equals")]
    for (a, first), (b, second) in pairwise(indexed):
        if len(first) == len(second) and not first.equals(second) and set(first) == set(second):
            raise ValueError(f"the indices of {a} and {b} have the same names in different orders; pass {b}.loc[{a}.index]")


def check_k(k: Any, n: int) -> int:
    """Return k as an int; from n/2 on, trustworthiness and continuity are no longer scaled to [0, 1]."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k={k!r}: expected an integer")
    if not 1 <= k < n / 2:
        raise ValueError(f"k={k} is out of range for {n} rows; it must be at least 1 and below half the rows, {n / 2:g}")
    return int(k)


def check_choice(name: str, value: str, known: Sequence[str]) -> str:
    """Return the value, or raise a ValueError that lists the known ones."""
    if value not in known:
        raise ValueError(f"{name}={value!r}; known: {', '.join(known)}")
    return value


def label_array(labels: Any, n: int, name: str = "labels") -> Array:
    """Return labels as an array (n,) of whatever dtype they have."""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
    values = np.asarray(labels, dtype=object) if isinstance(labels, list | tuple) else np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"{name} has the shape {values.shape}; expected one label for each of {n} rows")
    return values


def complete_labels(labels: Any, n: int, name: str = "labels") -> Array:
    """Return labels as an array (n,) of numbers or strings, or raise a ValueError if any is missing.

    Long strings stay objects, since numpy would pad all others to the longest.
    """
    values = label_array(labels, n, name)
    if _any_missing(values):
        raise ValueError(f"{name} has missing values; drop these rows or label them as a class of their own")
    if values.dtype.kind == "O":
        listed = values.tolist()
        if all(isinstance(each, str) for each in listed) and n * max(map(len, listed), default=0) > MAX_PADDED:
            return values
        values = np.asarray(listed)
    return values.astype(str) if values.dtype.kind == "O" else values


def unique_labels(labels: Any, n: int, name: str = "labels") -> tuple[Array, Array]:
    """Return the sorted classes, and for each row the index of its class."""
    classes, codes = np.unique(complete_labels(labels, n, name), return_inverse=True)
    return classes, codes.astype(np.int64)


def encode_labels(labels: Any, n: int, name: str = "labels") -> Tensor:
    """Return for each row the index of its class among the sorted classes; warn if there is one class alone."""
    classes, codes = unique_labels(labels, n, name)
    if len(classes) == 1 < n:
        warnings.warn(
            f"{name} are {classes[0]} for all {n:,} rows: scores by labels then say nothing of the map. Pass labels of two "
            "classes or more, or none.",
            stacklevel=level_of_caller(),
        )
    return torch.from_numpy(codes)


def encode_levels(labels: Any, n: int) -> dict[str, Tensor]:
    """Encode labels at one level, or at several: ``{"cluster": ..., "class": ...}`` or the columns of a DataFrame."""
    if not _has_levels(labels):
        return {"labels": encode_labels(labels, n)}
    if not len(labels.keys()):
        raise ValueError("labels has no columns; pass at least one level")
    names = list(labels.keys())
    return {str(name): encode_labels(labels[name], n, f"labels[{name!r}]") for name in names}


def first_level(labels: Any) -> Any:
    """Return the labels of the first level, or the labels themselves where there is only one."""
    return labels[next(iter(labels.keys()))] if _has_levels(labels) else labels


def has_label(labels: Array) -> Array:
    """Return (n,) bool: whether each row has a label. None, NaN and the like, infinities and empty texts are none.

    >>> has_label(np.array(["a", "", "b"])).tolist()
    [True, False, True]
    """
    if labels.dtype.kind == "O":
        return np.array([not is_missing(value) and value != "" for value in labels], dtype=bool)
    if labels.dtype.kind == "U":
        return np.asarray(labels != "")
    return np.isfinite(labels) if labels.dtype.kind in "fM" else np.ones(len(labels), dtype=bool)


def is_missing(value: Any) -> bool:
    """Tell whether a label is None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN and NaT do not equal themselves
    except TypeError:  # pandas' NA has no truth value
        return True


def _has_levels(labels: Any) -> bool:
    return isinstance(labels, Mapping) or hasattr(labels, "columns")


def _any_missing(values: Array) -> bool:
    if values.dtype.kind == "O":
        return any(map(is_missing, values))
    return bool((values != values).any())  # noqa: PLR0124 - NaN and NaT do not equal themselves
