"""The display of activities: a bar in a terminal or a notebook, and in a log a line every half minute."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

from dre.progress.activity import Activity, activities, activity, listening
from dre.progress.printable import printable

DELAY = 1.0  # seconds: shorter work shows no bar
REDRAWN = 0.1  # seconds between two looks at the work
LINES = 30.0  # seconds between two lines in a log
BAR = "{desc} |{bar}| {elapsed}<{remaining}{postfix}"  # no percentage: a line has 80 columns
NO_BAR = "{desc} {elapsed}{postfix}"


def is_interactive() -> bool:
    """Whether the output is a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def shown(verbose: bool | None = None) -> Iterator[None]:
    """Show what is being done inside, unless a display does so already.

    Parameters
    ----------
    verbose : bool or None, default=None
        None shows a bar in a terminal or a notebook, and nothing elsewhere. True prints lines elsewhere. False shows nothing.
    """
    if _displays or verbose is False or not (verbose or is_interactive()):
        yield
        return
    view: _View = _Bar() if is_interactive() else _Lines()
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(view, stop), name="dre progress", daemon=True)
    _displays.append(view)
    thread.start()
    try:
        with listening(view.close):
            yield
    finally:
        stop.set()
        thread.join()
        _displays.remove(view)
        view.close(None)


_displays: list[_View] = []


def is_shown() -> bool:
    """Whether there is a display: in a terminal or a notebook, in a command, or with ``verbose=True``."""
    return bool(_displays)


@contextmanager
def progress_bar(title: str, total: int, *, verbose: bool | None = None) -> Iterator[Callable[..., None]]:
    """Yield what to call after each step; ``verbose`` is that of ``shown``.

    >>> with progress_bar("reading", 2) as advance:
    ...     advance()
    """
    with shown(verbose), activity(title, total) as begun:
        yield begun.advance


_is_muted = ContextVar("is muted", default=False)


@contextmanager
def muted() -> Iterator[None]:
    """Print no lines inside: of several processes that do the same, one tells of it."""
    token = _is_muted.set(True)
    try:
        yield
    finally:
        _is_muted.reset(token)


def is_muted() -> bool:
    """Whether lines are not printed here."""
    return _is_muted.get()


def say(text: str) -> None:
    """Print a line on stderr, above the bar if there is one; what a terminal would obey is escaped."""
    if is_muted():
        return
    text = printable(text)
    if any(isinstance(view, _Bar) for view in _displays):
        from tqdm.auto import tqdm

        tqdm.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)


class _View(Protocol):
    """How activities are shown."""

    every: float  # seconds between two looks

    def look(self) -> None: ...

    def close(self, ended: Activity | None) -> None:
        """Remove what is shown of an activity that has ended, or of all."""


def _look(view: _View, stop: threading.Event) -> None:
    with suppress(OSError, ValueError):  # stderr may be closed while the work goes on
        while not stop.wait(view.every):
            view.look()


class _Bar:
    """A bar that is drawn in place, for the innermost work that has taken a while."""

    def __init__(self) -> None:
        self.every = REDRAWN
        self._lock = threading.Lock()
        self._bar: Any = None
        self._activity: Activity | None = None

    def look(self) -> None:
        with self._lock:
            present = [each for each in activities() if each.seconds >= DELAY]
            if not present:
                return
            if present[-1] is not self._activity or (self._bar.total is None) != (present[-1].total is None):
                self._open(present[-1])
            self._bar.total, self._bar.n = present[-1].total, present[-1].done
            self._bar.start_t = time.time() - present[-1].seconds
            self._bar.set_description_str(": ".join(each.title for each in present), refresh=False)
            self._bar.set_postfix_str(present[-1].note, refresh=False)
            self._bar.refresh()

    def close(self, ended: Activity | None) -> None:
        with self._lock:
            if self._bar is not None and ended in (None, self._activity):
                self._bar.close()
                self._bar = self._activity = None

    def _open(self, shown: Activity) -> None:
        from tqdm.auto import tqdm

        if self._bar is not None:
            self._bar.close()
        self._activity = shown
        self._bar = tqdm(total=shown.total, bar_format=NO_BAR if shown.total is None else BAR, leave=False, delay=1e-9)


class _Lines:
    """Plain lines for a log."""

    def __init__(self) -> None:
        self.every, self._began = LINES, time.monotonic()

    def look(self) -> None:
        say(f"dre: {describe(activities(), time.monotonic() - self._began)}")

    def close(self, ended: Activity | None) -> None:
        """Lines stay."""


def describe(present: list[Activity], seconds: float) -> str:
    """One line: the work, its state, the time since the start, and the time left.

    >>> fitting = Activity("stage 0 (x)")
    >>> fitting.note = "epoch 2 of 9, loss 1.5"
    >>> describe([fitting], 75)
    'stage 0 (x), epoch 2 of 9, loss 1.5, 01:15 elapsed'
    """
    parts = [": ".join(each.title for each in present) or "working"]
    if present:
        last = present[-1]
        parts += [last.note] if last.note else [f"{last.done / last.total:.0%}"] if last.total else []
    parts.append(f"{_clock(seconds)} elapsed")
    left = present[-1].seconds_left if present else None
    if left is not None:
        parts.append(f"about {_clock(left)} left" + (f" in {present[-1].scope}" if present[-1].scope else ""))
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
