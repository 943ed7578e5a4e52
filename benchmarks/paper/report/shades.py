"""Shades from red over yellow to green, as steps whose colours the style sheet has: 0 is worst, 8 best."""

from __future__ import annotations

import math

STEPS = 8
# A difference of this much has the full colour; the paper's own rounding has none.
FULL = 0.05
SQUARES = {"worse": "🟥", "slightly worse": "🟨", "not worse": "🟩"}


def of_value(value: float, among: list[float], *, smaller_is_better: bool = False) -> int:
    """Between the worst and the best of a column; times by their order of magnitude.

    >>> of_value(.9, [.5, .9]), of_value(.5, [.5, .9]), of_value(10, [1, 10, 100], smaller_is_better=True)
    (8, 0, 4)
    """
    if smaller_is_better:
        value, among = -math.log(max(value, 1e-9)), [-math.log(max(each, 1e-9)) for each in among]
    low, high = min(among), max(among)
    return STEPS // 2 if high == low else round(STEPS * (value - low) / (high - low))


def of_difference(difference: float) -> int:
    """

    >>> of_difference(.2), of_difference(0.), of_difference(-.2)
    (8, 4, 0)
    """
    return round(STEPS * (min(FULL, max(-FULL, difference)) + FULL) / (2 * FULL))


def of_ratio(here: float, there: float) -> int:
    """Ten times as fast has the full colour."""
    return of_difference(FULL * math.log10(max(there, 1e-9) / max(here, 1e-9)))


def square(difference: float, tolerance: float) -> str:
    """For pages that can't be styled.

    >>> square(.001, .02), square(-.01, .02), square(-.03, .02)
    ('🟩', '🟨', '🟥')
    """
    return SQUARES["not worse" if difference >= 0 else "slightly worse" if difference >= -tolerance else "worse"]
