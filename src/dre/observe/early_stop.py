"""Ends a stage whose loss no longer falls."""

from __future__ import annotations

import math

from dre.train import EpochEnded, Event, StageBegan


class EarlyStop:
    """After ``patience`` epochs without the loss falling by more than ``improvement`` of itself, the next stage begins.

    Made for a constant rate, ``training=(None, Optimiser(1e-3, policy="constant"))``: a one-cycle rate is still high when a
    stage ends early.
    """

    def __init__(self, patience: int = 10, improvement: float = 1e-3) -> None:
        if patience < 1:
            raise ValueError(f"patience={patience}: must be at least 1")
        self.patience = patience
        self.improvement = improvement
        self._best, self._waited = math.inf, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            self._best, self._waited = math.inf, 0
        elif isinstance(event, EpochEnded):
            if event.loss < self._best - self.improvement * abs(event.loss):
                self._best, self._waited = event.loss, 0
            else:
                self._waited += 1
            if self._waited >= self.patience:
                event.run.end_stage()

    def __repr__(self) -> str:
        return f"EarlyStop(patience={self.patience}, improvement={self.improvement})"
