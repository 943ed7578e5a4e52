"""The line of the user's code that a warning names."""

from __future__ import annotations

import sys


def level_of_caller() -> int:
    """Return the ``stacklevel`` of a warning that names the line that called this package, by whichever of its functions.

    Where a command called it, that is a line of the command, which prints the warning as its own.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(module: str) -> bool:
    package, *rooms = module.split(".")
    return package in ("dre", "sklearn") and rooms[:1] != ["cli"]
