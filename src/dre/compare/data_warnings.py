"""Warnings about input data before an embedding: one column that dominates all distances."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dre.data.scaling import Scaling

SHARE = "of all squared distances"


def data_warnings(rows: Any, feature_names: Sequence[str] | None = None) -> list[str]:
    """Return warnings about the rows, one line each; rows other than numeric 2-D arrays are not examined.

    A column without a name is named by its number, counted from 0.

    >>> data_warnings(np.array([[0, 1], [1, 500]]), ["size", "weight"])[0].partition(":")[0]
    "column 'weight' makes up 99 % of all squared distances"
    """
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "biuf":
        return []
    if len(rows) == 0 or (rows.dtype.kind == "f" and not np.isfinite(rows).all()):
        return []
    dominant = Scaling.fit(rows).dominant_columns
    if dominant is None:
        return []
    found = dominant.describe(feature_names)
    return [f"{found}: the maps show little else. If the columns have different units, pass standardize=True."]


@contextmanager
def without_data_warnings() -> Iterator[None]:
    """Suppress the warning of ``DRE.fit`` about a dominant column, which the comparison has given already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f".* {SHARE}")
        yield
