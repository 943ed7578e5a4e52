"""Consumers of the loop's events: they read the running state, and may ask the run to end. The loop knows none of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Protocol

from dre.training.loop import Event


class Observer(Protocol):
    """Anything that can be called with an event. One that is a context manager too is entered for the time of the run."""

    def __call__(self, event: Event) -> None: ...


def check_observers(observers: Iterable[Observer]) -> list[Observer]:
    """Refuse what can't be called with an event, before anything is trained."""
    if callable(observers):
        raise TypeError(f"observers={observers!r}: pass a list, [{getattr(observers, '__name__', 'observer')}]")
    for observer in (observers := list(observers)):
        if isinstance(observer, type) or not callable(observer):
            raise TypeError(f"{observer!r} can't watch a run: pass what can be called with an event, such as EarlyStop()")
    return observers


def watch(events: Iterable[Event], observers: Iterable[Observer]) -> None:
    """Carry a run through, showing every event to every observer."""
    observers = check_observers(observers)
    with ExitStack() as stack:
        for observer in observers:
            if hasattr(observer, "__enter__"):
                stack.enter_context(observer)  # type: ignore[arg-type]
        for event in events:
            for observer in observers:
                observer(event)
