"""The history of a run: one record per epoch, and the weights at the end of each stage."""

from __future__ import annotations

from typing import Any

from dre.training.events import EpochEnded, Event, StageEnded
from dre.training.run import Weights


class History:
    """One record per epoch, ready for ``pandas.DataFrame(model.history_)``."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.stages: list[Weights] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, EpochEnded):
            self.records.append(
                {
                    "stage": event.run.stage,
                    "source": event.run.current_stage.source,
                    "epoch": event.run.epoch,
                    "against": event.run.against,
                    "loss": event.loss,
                    "rows": event.rows,
                    "seconds": event.seconds,
                }
            )
        elif isinstance(event, StageEnded):
            self.stages.append(event.weights)
