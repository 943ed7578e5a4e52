"""Missing values of a table's features: refused with their places, left out by rows, or filled by a mean or a median."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dre.io.readers.source import Array, DroppedRows, SourceError
from dre.io.readers.table import Table

MIDDLES: dict[str, Callable[..., Array]] = {"mean": np.nanmean, "median": np.nanmedian}
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
    filled : dict of arrays of shape (n,) of bool
        Which values of a column are filled in.
    """

    values: Array
    fill: dict[str, float]
    dropped: DroppedRows | None = None
    filled: dict[str, Array] = field(default_factory=dict)


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
    gaps, known = np.isnan(values), dict(fill or {})
    if policy in MIDDLES:  # of all features: other tables may lack what this one has
        known = {**_middles(table, names, values, policy), **known}
    filled = {names[i]: gaps[:, i].copy() for i in np.flatnonzero(gaps.any(0)) if names[i] in known}
    for i in np.flatnonzero(gaps.any(0)):
        if names[i] in known:
            values[gaps[:, i], i], gaps[:, i] = known[names[i]], False
    if not gaps.any():
        return Completed(values, known, filled=filled)
    if policy == "drop":
        kept = np.asarray(~gaps.any(1))
        if not kept.any():
            raise SourceError(f"{table.path}: every row lacks a value; leave out the columns that lack most of them")
        filled = {name: missing[kept] for name, missing in filled.items()}
        return Completed(values[kept], known, DroppedRows(kept, table.names), filled)
    if policy == "error":
        raise SourceError(
            f"{table.path}: {places(table, names, gaps)}.\nPass missing='drop', missing='mean' or missing='median'."
        )
    empty = names[int(gaps.any(0).argmax())]
    raise SourceError(f"{table.path}: the column {empty!r} has no value at all, and so no {policy}: pass missing='drop'")


def _middles(table: Table, names: list[str], values: Array, policy: str) -> dict[str, float]:
    """Mean or median of each feature that has a value."""
    present = ~np.isnan(values).all(axis=0)
    middles = MIDDLES[policy](values[:, present], axis=0)
    return dict(zip(np.array(names, dtype=object)[present].tolist(), middles.tolist(), strict=True))


def places(table: Table, names: list[str], gaps: Array) -> str:
    """Words that count missing values by column, and name the first of each."""
    counts = gaps.sum(0)
    worst = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    parts = [
        f"{int(counts[i]):,} in {names[i]!r}, the first in {table.place(int(gaps[:, i].argmax()), names[i])}"
        for i in worst[:LISTED]
    ]
    more = f"; {len(worst) - LISTED:,} more column{'s' * (len(worst) > LISTED + 1)}" if len(worst) > LISTED else ""
    return f"missing values in {int(gaps.any(1).sum()):,} of {len(gaps):,} rows: {'; '.join(parts)}{more}"
