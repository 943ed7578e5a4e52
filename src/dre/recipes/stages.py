"""Stages that follow from one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dre.schedule import Stage


def recursive(first: Stage, again: Stage, sources: Sequence[str], recursions: int) -> list[Stage]:
    """The first stage, then ``again`` on one source after the other; beyond the last source, on the last."""
    if recursions < 0:
        raise ValueError(f"recursions={recursions}: must not be negative")
    return [first, *(replace(again, source=sources[min(i, len(sources) - 1)]) for i in range(recursions))]
