"""Observers of a run: they receive the loop's events, and may ask the run to end. The loop knows none of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Protocol

from dre.training.events import Event


class Observer(Protocol):
    """Anything that can be called with an event.

    An observer that is a context manager is entered for the time of the run. Checkpoints keep what ``state_dict()`` of an
    observer returns, if it has one, and pass it to ``load_state_dict`` when the fit is resumed.
    """

    def __call__(self, event: Event) -> None: ...


def check_observers(observers: Iterable[Observer]) -> list[Observer]:
    """Raise a TypeError for anything that can't be called with an event."""
    if callable(observers):
        raise TypeError(f"observers={observers!r}: pass a list, [{getattr(observers, '__name__', 'observer')}]")
    for observer in (observers := list(observers)):
        if isinstance(observer, type) or not callable(observer):
            raise TypeError(f"{observer!r} can't observe a run: pass a callable that takes an event, such as EarlyStopping()")
    return observers


def watch(events: Iterable[Event], observers: Iterable[Observer]) -> None:
    """Run to the end, passing every event to every observer."""
    observers = check_observers(observers)
    with ExitStack() as stack:
        for observer in observers:
            if hasattr(observer, "__enter__"):
                stack.enter_context(observer)  # type: ignore[arg-type]
        for event in events:
            for observer in observers:
                observer(event)
