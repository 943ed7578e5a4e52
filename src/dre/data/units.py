"""Columns in different units: the few that outweigh all others in squared distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DOMINANT_SHARE = 0.9  # of all squared distances
FEW_SHARE, FEW = 0.25, 10  # of the columns, and at most so many
COMPONENTS = 5  # columns from which falling variances tell principal components


@dataclass(frozen=True)
class DominantColumns:
    """A few columns, the widest first, and their share of all squared distances."""

    columns: tuple[int, ...]
    share: float

    def describe(self, names: Sequence[str] | None = None) -> str:
        """Say which columns these are; those without names are counted from 0.

        >>> DominantColumns((1, 0), 0.987).describe(["size", "price"])
        "columns 'price', 'size' make up 98 % of all squared distances"
        """
        listed = ", ".join(str(i) if names is None else repr(str(names[i])) for i in self.columns)
        several = len(self.columns) > 1
        percent = math.floor(100 * self.share)
        return f"column{'s' * several} {listed} make{'s' * (not several)} up {percent} % of all squared distances"


def dominant_columns(variances: Any) -> DominantColumns | None:
    """Find the few columns that make up nearly all squared distances between rows.

    Parameters
    ----------
    variances : array-like of shape (d,)
        Of the columns, in any unit.

    Returns
    -------
    DominantColumns or None
        None if the columns weigh alike, or fall in variance from the first to the last as principal components do.

    Examples
    --------
    >>> dominant_columns([1.0, 2.0, 500.0, 3.0]).columns
    (2,)
    >>> dominant_columns([1.0, 2.0, 5.0, 3.0]) is None
    True
    """
    variances = np.asarray(variances, dtype=np.float64)
    total = float(variances.sum())
    if len(variances) < 2 or not 0 < total < math.inf:
        return None
    if len(variances) >= COMPONENTS and bool((np.diff(variances) <= 0).all()):
        return None
    order = np.argsort(-variances, kind="stable")
    shares = np.cumsum(variances[order]) / total
    count = int(np.searchsorted(shares, DOMINANT_SHARE, side="right")) + 1
    if count > min(FEW, max(1, int(FEW_SHARE * len(variances)))):
        return None
    return DominantColumns(tuple(int(i) for i in order[:count]), float(shares[count - 1]))
