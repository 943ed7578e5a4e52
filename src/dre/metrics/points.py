"""Rows and maps as points on the device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.data.validation import check_array, check_memory
from dre.runtime import resolve_device

Device = str | torch.device
HIGH, LOW = "high", "low"  # the space of the rows, and that of their map


def points(rows: Any, name: str, device: Device = "auto") -> Tensor:
    """Rows of any kind as (n, d); float32 stays so, whole numbers and all else become float64."""
    where = resolve_device(device)
    if where.type not in ("cpu", "cuda"):
        raise ValueError(f"distances are settled in float64, which device={str(where)!r} may lack; use device='cpu' or 'cuda'")
    if len(np.shape(rows)) == 1 and not scipy.sparse.issparse(rows):
        hint = "; labels come after the map" if name == "Y" else ""
        raise ValueError(f"{name} has the shape {np.shape(rows)}; expected rows with columns, (n, d){hint}")
    if _is_there(rows, where) and rows.dtype in (torch.float32, torch.float64) and rows.ndim > 1 and rows.numel():
        found: Tensor = rows.detach()
        if not bool(found.isfinite().all()):
            check_array(rows, name)
    else:
        values = check_array(rows, name)
        kept = np.float32 if values.dtype == np.float32 else np.float64
        if scipy.sparse.issparse(values):
            check_memory(values, name, kept)
            values = values.toarray()
        found = torch.as_tensor(np.ascontiguousarray(values, dtype=kept)).to(where)
    return found.reshape(len(found), -1)


def _is_there(rows: Any, where: torch.device) -> bool:
    return isinstance(rows, Tensor) and rows.device.type == where.type and where.index in (None, rows.device.index)


def check_row_names(**given: Any) -> None:
    """Rows go by their place; a pandas index that has the same names in another order is a mistake that no score would show."""
    indexed = [(name, rows.index) for name, rows in given.items() if hasattr(rows, "index") and hasattr(rows.index, "equals")]
    for (a, first), (b, second) in pairwise(indexed):
        if len(first) == len(second) and not first.equals(second) and set(first) == set(second):
            raise ValueError(f"the rows of {a} and {b} have the same names in another order; pass {b}.loc[{a}.index]")


def map_alone(Y: Any, device: Device = "auto") -> dict[str, Tensor]:
    return {LOW: points(Y, "Y", device)}


def two_spaces(X: Any, Y: Any, device: Device = "auto", names: tuple[str, str] = ("X", "Y")) -> dict[str, Tensor]:
    """The rows and their map, or two maps of the same rows, both as points on one device."""
    check_row_names(**dict(zip(names, (X, Y), strict=True)))
    high = points(X, names[0], device)
    low = points(Y, names[1], high.device)
    if len(high) != len(low):
        a, b = names
        raise ValueError(f"{a} has {len(high)} rows and {b} has {len(low)}; row i of both must be the same one")
    if len(high) < 3:
        raise ValueError(f"{len(high)} rows are too few to compare distances: 3 are the least")
    return {HIGH: high, LOW: low}


def check_k(k: Any, n: int) -> int:
    """k must be below n/2: beyond it the scale of trustworthiness and continuity no longer holds."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k={k!r}: expected a whole number")
    if not 1 <= k < n / 2:
        raise ValueError(f"k={k} neighbours of {n} rows; k must be at least 1 and below half the rows, {n / 2:g}")
    return int(k)


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"{name}={value!r}; known: {', '.join(known)}")
    return value
