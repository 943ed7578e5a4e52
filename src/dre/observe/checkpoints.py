"""Decides when a run is written to the disk: as stages end, every few minutes, and before a signal ends the process."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from dre.training.events import Event, StageEnded, StageSkipped, StageUndone, TargetBegan
from dre.training.run import Run

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
STAGE_ENDS = (StageEnded, StageUndone, StageSkipped)


class StoppedBySignal(SystemExit):
    """SIGTERM or SIGHUP ended the fit, after a checkpoint was written. The exit code is that of a shell."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.signal = signal.Signals(number).name


class Checkpoints:
    """An observer that writes a run, so that it can be resumed.

    It writes at the first event, when a stage has ended, when as many minutes have passed, and when the fit is asked to end.
    SIGTERM and SIGHUP are held back until the step is done and the run is written, unless the program ignores them. If the
    disk is full, the first write fails; later ones warn, and the fit goes on.

    Parameters
    ----------
    write : callable
        Called with the run; it has to be durable when it returns, and raises an OSError if that is not possible.
    minutes : float
        Least time between two writes within a stage. 0 writes at every step.
    """

    def __init__(self, write: Callable[[Run], None], minutes: float) -> None:
        self._write, self._seconds = write, 60 * minutes
        self._position: tuple[object, ...] | None = None  # of what was written last
        self._written = 0.0  # when
        self._is_over = False  # whether what follows is not to be resumed
        self._is_searching = False  # a neighbor search may take long, and everything before it is written
        self._signal: int | None = None
        self._before: dict[int, Any] = {}  # the handlers outside

    def __enter__(self) -> Checkpoints:
        if threading.current_thread() is threading.main_thread():  # only this thread may set handlers
            # one that is ignored, as SIGHUP under nohup, or that was not set from Python, is left alone
            chosen = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
            self._before = {number: signal.signal(number, self._handle) for number in chosen}
        return self

    def __exit__(self, *problem: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def __call__(self, event: Event) -> None:
        self._is_searching = False
        run = event.run
        due = time.monotonic() - self._written >= self._seconds
        ends = isinstance(event, STAGE_ENDS) or run.ending == "fit"
        if run.ending == "stage" and not ends:  # the end of the stage, which is not part of a state, comes next
            return
        if not self._is_over and (due or ends or self._position is None or self._signal is not None):
            self._save(run)
        self._is_over = self._is_over or run.ending == "fit"
        if self._signal is not None:
            self._leave(self._signal)
        self._is_searching = isinstance(event, TargetBegan) and self._position == _position(run)

    def _save(self, run: Run) -> None:
        if _position(run) == self._position:
            return
        try:
            self._write(run)
        except OSError as problem:
            if self._position is None:
                raise
            warnings.warn(f"{problem}. The fit goes on with the checkpoint before.", stacklevel=2)
        else:
            self._position = _position(run)
        self._written = time.monotonic()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        if self._is_searching:
            self._leave(number)

    def _leave(self, number: int) -> None:
        """End the process, or let the program's own handler decide."""
        before, self._signal = self._before.get(number), None
        if not callable(before):
            raise StoppedBySignal(number)
        signal.signal(number, before)
        signal.raise_signal(number)
        signal.signal(number, self._handle)  # the fit goes on


def _position(run: Run) -> tuple[object, ...]:
    """Where the run is: a state at the same position is the same."""
    has_target = run.resume_at[0] == run.stage and run.target is not None
    return (*run.resume_at, run.steps, has_target)
