"""Labels of any kind as numbers, at one level or at several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


def codes(labels: Any, n: int, name: str = "labels") -> Tensor:
    """One number from 0 up per label, in the order of the sorted labels."""
    return torch.from_numpy(named_codes(labels, n, name)[1])


def named_codes(labels: Any, n: int, name: str = "labels") -> tuple[Array, Array]:
    """The distinct labels, sorted, and for each row which of them it has."""
    names, found = np.unique(plain_labels(labels, n, name), return_inverse=True)
    return names, found.astype(np.int64)


def one_for_each(labels: Any, n: int, name: str = "labels") -> Array:
    """(n,) of whatever kind they are."""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
    values = np.asarray(labels, dtype=object) if isinstance(labels, list | tuple) else np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"{name} has the shape {values.shape}; expected one label for each of {n} rows")
    return values


def plain_labels(labels: Any, n: int, name: str) -> Array:
    """(n,) numbers or texts, none missing."""
    values = one_for_each(labels, n, name)
    if _any_missing(values):
        raise ValueError(f"{name} has missing values; drop these rows or give them a label of their own")
    if values.dtype.kind == "O":
        values = np.asarray(values.tolist())
    return values.astype(str) if values.dtype.kind == "O" else values


def levels(labels: Any, n: int) -> dict[str, Tensor]:
    """Labels at one level, or at several by name: {"cluster": ..., "class": ...} or the columns of a DataFrame."""
    if not _has_levels(labels):
        return {"labels": codes(labels, n)}
    if not len(labels.keys()):
        raise ValueError("labels has no columns")
    return {str(name): codes(labels[name], n, f"labels[{name!r}]") for name in labels.keys()}  # noqa: SIM118 - a DataFrame's too


def first_level(labels: Any) -> Any:
    return labels[next(iter(labels.keys()))] if _has_levels(labels) else labels


def _has_levels(labels: Any) -> bool:
    return isinstance(labels, Mapping) or hasattr(labels, "columns")


def _any_missing(values: Array) -> bool:
    if values.dtype.kind == "O":
        return any(map(_is_missing, values))
    return bool((values != values).any())  # noqa: PLR0124 - NaN and NaT don't equal themselves


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what doesn't equal itself, or won't say."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True
