"""The line of the user's code that a warning names."""

from __future__ import annotations

import sys


def level_of_caller() -> int:
    """Return the ``stacklevel`` of a warning that names the line that called this package, by whichever of its functions."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("dre", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level
