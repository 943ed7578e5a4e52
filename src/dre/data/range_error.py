"""The error for a row with a value that is too large to compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RangeError(ValueError):
    """A value of X is finite, but too large. The message names its row and its column.

    Parameters
    ----------
    row : int
    place : tuple of int
        Within the row.
    value : float
    reason : str
        The rest of the sentence: what is too large for what, and the remedy.
    columns : sequence of str, optional
        Names of the columns.
    """

    def __init__(
        self, row: int, place: tuple[int, ...], value: float, reason: str, columns: Sequence[Any] | None = None
    ) -> None:
        self._about = (row, place, value, reason, columns)
        where = f"at {list(place)}" if columns is None or len(place) != 1 else f"in column {str(columns[place[0]])!r}"
        super().__init__(f"X has {value:.6g} in row {row} {where}: {reason}")

    def __reduce__(self) -> tuple[type[RangeError], tuple[Any, ...]]:
        return RangeError, self._about

    def located(self, *, columns: Sequence[Any] | None = None, first_row: int = 0) -> RangeError:
        """Return the error with the names of the columns, or for rows that are a part of others from ``first_row`` on."""
        row, place, value, reason, known = self._about
        return RangeError(row + first_row, place, value, reason, known if columns is None else columns)
