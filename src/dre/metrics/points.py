"""What callers hand in: rows as points on the device, labels as numbers, and errors that name the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.inputs import check_array
from dre.runtime import pick_device

Array = np.ndarray[Any, Any]
Device = str | torch.device
HIGH, LOW = "high", "low"  # the space of the rows, and that of their map


def points(rows: Any, name: str, device: Device = "auto") -> Tensor:
    """Rows of any kind as (n, d); float32 stays so, whole numbers and all else become float64."""
    where = pick_device(device)
    if where.type not in ("cpu", "cuda"):
        raise ValueError(f"distances are settled in float64, which device={str(where)!r} may lack; use device='cpu' or 'cuda'")
    if _is_there(rows, where) and rows.dtype in (torch.float32, torch.float64) and rows.ndim > 1 and rows.numel():
        found: Tensor = rows.detach()
        if not bool(found.isfinite().all()):
            check_array(rows, name)
    else:
        values = check_array(rows, name)
        values = values.toarray() if hasattr(values, "toarray") else values
        kept = values.dtype if values.dtype == np.float32 else np.float64
        found = torch.as_tensor(np.ascontiguousarray(values, dtype=kept)).to(where)
    return found.reshape(len(found), -1)


def _is_there(rows: Any, where: torch.device) -> bool:
    return isinstance(rows, Tensor) and rows.device.type == where.type and where.index in (None, rows.device.index)


def map_alone(Y: Any, device: Device = "auto") -> dict[str, Tensor]:
    return {LOW: points(Y, "Y", device)}


def two_spaces(X: Any, Y: Any, device: Device = "auto") -> dict[str, Tensor]:
    """The rows and their map, both as points."""
    high, low = points(X, "X", device), points(Y, "Y", device)
    if len(high) != len(low):
        raise ValueError(f"X has {len(high)} rows and Y has {len(low)}; row i of Y must be the place of row i of X")
    if len(high) < 3:
        raise ValueError(f"{len(high)} rows are too few to compare distances: 3 are the least")
    return {HIGH: high, LOW: low}


def codes(labels: Any, n: int, name: str = "labels") -> Tensor:
    """One number from 0 up per label, in the order of the sorted labels."""
    return torch.from_numpy(named_codes(labels, n, name)[1])


def named_codes(labels: Any, n: int, name: str = "labels") -> tuple[Array, Array]:
    """The distinct labels, sorted, and for each row which of them it has."""
    names, found = np.unique(plain_labels(labels, n, name), return_inverse=True)
    return names, found.astype(np.int64)


def plain_labels(labels: Any, n: int, name: str) -> Array:
    """(n,) numbers or texts, none missing."""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
    values = np.asarray(labels, dtype=object) if isinstance(labels, list | tuple) else np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"{name} has the shape {values.shape}; expected one label for each of {n} rows")
    if any(map(_is_missing, values)) if values.dtype.kind == "O" else (values != values).any():  # noqa: PLR0124
        raise ValueError(f"{name} has missing values; drop these rows or give them a label of their own")
    if values.dtype.kind == "O":
        values = np.asarray(values.tolist())
    return values.astype(str) if values.dtype.kind == "O" else values


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what doesn't equal itself, or won't say."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True


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


def check_k(k: Any, n: int) -> int:
    """Ranks beyond k must exist for as many rows as those below it: 1 <= k < n/2."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k={k!r}: expected a whole number")
    if not 1 <= k < n / 2:
        raise ValueError(f"k={k} neighbours of {n} rows; k must be at least 1 and below half the rows, {n / 2:g}")
    return int(k)


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"{name}={value!r}; known: {', '.join(known)}")
    return value
