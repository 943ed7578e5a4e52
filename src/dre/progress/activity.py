"""What the program is doing: long work says it here, and a display reads it. It costs nothing where nobody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Activity:
    """Work in progress.

    Parameters
    ----------
    title : str
    total : int, optional
        Number of steps, if it is known.

    Attributes
    ----------
    done : int
        Steps that were made.
    note : str
        More about the present state, such as the loss.
    scope : str
        What the steps are those of, if more is to follow: "this stage".
    began : float
        When it began, by ``time.monotonic()``.
    """

    def __init__(self, title: str, total: int | None = None) -> None:
        self.title, self.total, self.done = title, total, 0
        self.note, self.scope, self.began = "", "", time.monotonic()

    def advance(self, steps: int = 1) -> None:
        """Count steps that were made."""
        self.done += steps

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def seconds_left(self) -> float | None:
        """At the mean speed so far; None if it is not known."""
        if not self.total or not 0 < self.done <= self.total:
            return None
        return self.seconds * (self.total - self.done) / self.done


_current: list[Activity] = []  # the inner ones last
_listeners: list[Callable[[Activity], None]] = []


def begin(title: str, total: int | None = None) -> Activity:
    """Begin an activity inside of the present ones, until ``end``."""
    begun = Activity(title, total)
    _current.append(begun)
    return begun


def end(ended: Activity) -> None:
    """End an activity; one that has ended before is left alone."""
    if ended in _current:
        _current.remove(ended)
        for listener in _listeners:
            listener(ended)


@contextmanager
def activity(title: str, total: int | None = None) -> Iterator[Activity]:
    """Say that something is being done inside.

    >>> with activity("reading", total=3) as reading:
    ...     reading.advance()
    ...     [(each.title, each.done) for each in activities()]
    [('reading', 1)]
    """
    begun = begin(title, total)
    try:
        yield begun
    finally:
        end(begun)


def activities() -> list[Activity]:
    """Return the present activities, the inner ones last."""
    return list(_current)


@contextmanager
def listening(listener: Callable[[Activity], None]) -> Iterator[None]:
    """Call a function with every activity that ends inside."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
