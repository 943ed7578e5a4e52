"""Missing values of a table's features: refused with their places, left out by rows, or filled by a mean or a median."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dre.io.readers.source import Array, DroppedRows, SourceError
from dre.io.readers.table import Table

LISTED = 5  # columns that an error names, with the first missing cell of each


@dataclass(frozen=True, eq=False)
class Completed:
    """Features without gaps.

    Parameters
    ----------
    values : array of shape (n, d)
    fill : dict of str to float
        What stands for a missing value in each column that had one.
    dropped : DroppedRows or None
        Which rows of the file are not among the values.
    """

    values: Array
    fill: dict[str, float]
    dropped: DroppedRows | None = None


def complete(
    table: Table, names: list[str], values: Array, policy: str = "error", fill: Mapping[str, float] | None = None
) -> Completed:
    """Do with missing values what the policy says.

    Parameters
    ----------
    table : Table
    names : list of str
        Names of the features.
    values : array of shape (n, d)
        NaN where a value is missing.
    policy : {"error", "drop", "mean", "median"}, default="error"
    fill : mapping of str to float, default=None
        Values of an earlier table, by which gaps are filled whatever the policy is.
    """
    gaps = np.isnan(values)
    known = fill or {}
    for i in np.flatnonzero(gaps.any(0)):
        if names[i] in known:
            values[gaps[:, i], i], gaps[:, i] = known[names[i]], False
    if not gaps.any():
        return Completed(values, dict(known))
    if policy == "drop":
        kept = np.asarray(~gaps.any(1))
        if not kept.any():
            raise SourceError(f"{table.path}: every row lacks a value; leave out the columns that lack most of them")
        return Completed(values[kept], dict(known), DroppedRows(kept, table.names))
    if policy == "error":
        raise SourceError(
            f"{table.path}: {_places(table, names, gaps)}.\nPass missing='drop', missing='mean' or missing='median'."
        )
    middle = np.nanmean if policy == "mean" else np.nanmedian
    found = {names[i]: float(middle(values[:, i])) for i in np.flatnonzero(gaps.any(0))}
    for i in np.flatnonzero(gaps.any(0)):
        values[gaps[:, i], i] = found[names[i]]
    return Completed(values, {**known, **found})


def _places(table: Table, names: list[str], gaps: Array) -> str:
    counts = gaps.sum(0)
    worst = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    parts = [
        f"{int(counts[i]):,} in {names[i]!r}, the first in {table.place(int(gaps[:, i].argmax()), names[i])}"
        for i in worst[:LISTED]
    ]
    more = f"; {len(worst) - LISTED:,} more columns" if len(worst) > LISTED else ""
    return f"missing values in {int(gaps.any(1).sum()):,} of {len(gaps):,} rows: {'; '.join(parts)}{more}"
