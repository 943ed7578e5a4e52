"""When an observer may look again: at most every so many seconds, and for a small share of the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_SHARE = 0.1  # of the time until the second time may be the first one: it says little about those that follow


class Pace:
    """Lets work be done as often as it may, by the time that it took last.

    Of the last two times the shorter one counts, since the first time loads libraries, and other programs may slow down any
    other. After the first time the next one comes sooner, as if a tenth of the time could be spent. Work that becomes
    slower, as that of another stage, is done less often from then on.

    Parameters
    ----------
    every : float
        Seconds, at least, from one time to the next.
    share : float
        Of the time that the work may take.

    Examples
    --------
    >>> pace = Pace(every=60.0, share=0.05)
    >>> for _ in range(3):
    ...     if pace.is_due():
    ...         with pace.working():
    ...             print("drawn")
    drawn
    """

    def __init__(self, every: float, share: float) -> None:
        self.every, self.share = every, share
        self.spent, self._due = 0.0, 0.0
        self._last: tuple[float, ...] = ()  # seconds of the last two times

    def is_due(self) -> bool:
        """Whether the work may be done now."""
        return time.monotonic() >= self._due

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure the work inside."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self.spent += now - began
        self._last = (*self._last[-1:], now - began)
        share = self.share if len(self._last) > 1 else max(self.share, FIRST_SHARE)
        self._due = now + max(self.every, min(self._last) / share)
