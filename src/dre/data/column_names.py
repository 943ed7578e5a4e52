"""Names of the columns of a table: which it lacks, which it has twice, and how a message lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LISTED = 5  # names or values that a message lists


def listed(values: Sequence[Any], joint: str = ", ", *, quote: bool = True) -> str:
    """Return the first values as text, with the number of the others.

    >>> listed(list("abcdefg"))
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = [repr(value) if quote else value for value in values[:LISTED]]
    more = f" and {len(values) - LISTED:,} more" if len(values) > LISTED else ""
    return joint.join(shown) + more


def check_known(wanted: Sequence[str], columns: Sequence[str]) -> None:
    """Raise a ValueError that names the wanted columns that are none of a table's."""
    known = set(columns)
    lacking = [name for name in wanted if name not in known]
    if lacking:
        kind = "column" if len(lacking) == 1 else "columns"
        raise ValueError(f"X has no {kind} {listed(lacking)}; its columns: {listed(list(columns))}")


def check_unique(X: Any) -> None:
    """Raise a ValueError if a DataFrame of pandas has two columns of the same name."""
    if hasattr(X, "iloc") and not getattr(X.columns, "is_unique", True):
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X has several columns called {twice!r}: rename them, or pass X.to_numpy()")
