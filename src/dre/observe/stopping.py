"""Observers that end a run early: when the loss stops falling, and on Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from types import FrameType
from typing import Any

from dre.runtime.caller import level_of_caller
from dre.training.events import EpochEnded, Event, StageBegan
from dre.training.run import Run


class EarlyStopping:
    """Ends a stage after ``patience`` epochs in which the loss did not fall by more than ``min_delta`` of itself.

    It is made for a constant learning rate, ``optimizer="adam(0.001, policy=constant)"``: a one-cycle rate is still high when
    a stage ends early.

    Parameters
    ----------
    patience : int, default=10
        Epochs to wait for an improvement.
    min_delta : float, default=1e-3
        Smallest improvement that counts, as a share of the loss.

    Examples
    --------
    >>> DRE().fit(X, observers=[EarlyStopping(patience=20)])  # doctest: +SKIP
    """

    def __init__(self, patience: int = 10, min_delta: float = 1e-3) -> None:
        if patience < 1:
            raise ValueError(f"patience={patience}: must be at least 1")
        self.patience = patience
        self.min_delta = min_delta
        self._best, self._waited = math.inf, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan) and event.run.epoch == 0:  # not where a stage is resumed
            self._best, self._waited = math.inf, 0
        elif isinstance(event, EpochEnded) and not event.run.is_following:  # following has a loss of its own
            if event.loss < self._best - self.min_delta * abs(event.loss):
                self._best, self._waited = event.loss, 0
            else:
                self._waited += 1
            if self._waited >= self.patience:
                event.run.end_stage()

    def state_dict(self) -> dict[str, float]:
        """Return what a checkpoint keeps."""
        return {"best": self._best, "waited": self._waited}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from what ``state_dict`` returned."""
        self._best, self._waited = state["best"], int(state["waited"])

    def __repr__(self) -> str:
        return f"EarlyStopping(patience={self.patience}, min_delta={self.min_delta})"


class Interrupt:
    """Ends the fit after the current step on Ctrl-C, and keeps the weights; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.requested = False
        self._run: Run | None = None
        self._before: Any = None  # the previous handler; None outside the main thread

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():  # only this thread may set a handler
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def warn(self) -> None:
        """Warn where Ctrl-C ended the fit; to be called once the map of the weights is complete.

        Until then another Ctrl-C can still lose it.
        """
        if self.requested and self._run is not None:
            run = self._run
            warnings.warn(
                f"fit was interrupted in stage {run.stage} ({run.current_stage.source}), "
                f"epoch {run.epoch + 1} of {run.current_stage.all_epochs}: the model has the weights so far and can be used",
                stacklevel=level_of_caller(),
            )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or self._run is None or self._run.steps == 0:  # there is nothing to keep
            raise KeyboardInterrupt
        self.requested = True

    def __call__(self, event: Event) -> None:
        self._run = event.run
        if self.requested:
            event.run.end_fit()
