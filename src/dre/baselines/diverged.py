"""Training that diverges ends with an error that says what to do, and not with a map of NaN."""

from __future__ import annotations

import math

from dre.training.loop import DivergedError


def check_error(error: float, epoch: int, *, of: str, remedy: str) -> None:
    """After an epoch, counted from 0.

    >>> check_error(float("inf"), 2, of="the error of the network", remedy="pass a lower rate")
    Traceback (most recent call last):
    dre.training.loop.DivergedError: the error of the network became inf in epoch 3: pass a lower rate
    """
    if not math.isfinite(error):
        raise DivergedError(f"{of} became {error} in epoch {epoch + 1}: {remedy}")
