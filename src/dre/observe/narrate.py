"""Says in lines what was chosen and how it went, for ``verbose=True``."""

from __future__ import annotations

import sys

from dre.batches import Auto
from dre.target import Graph
from dre.train import EpochEnded, Event, StageBegan, StageEnded


class Narrate:
    """Lines on stderr: the recipe before the first stage, then each stage's target, batches and last loss."""

    def __init__(self) -> None:
        self._loss, self._seconds = 0.0, 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            if event.run.stage == 0:
                n, *shape = event.run.rows.shape
                self._say(f"dre on {event.run.runtime}, {n} rows of the shape {tuple(shape)}\n{event.run.recipe}")
            self._seconds = 0.0
            self._say(f"stage {event.run.stage} ({event.run.plan.source}): {_target(event)}, {_batches(event)}")
        elif isinstance(event, EpochEnded):
            self._loss, self._seconds = event.loss, self._seconds + event.seconds
        elif isinstance(event, StageEnded):
            self._say(
                f"stage {event.run.stage} done: {event.run.epoch + 1} epochs, loss {self._loss:.4g}, {self._seconds:.1f} s"
            )

    @staticmethod
    def _say(text: str) -> None:
        print(text, file=sys.stderr)


def _target(event: StageBegan) -> str:
    if not isinstance(event.target, Graph):
        return "target inside each batch"
    found = event.target.found
    recall = f", recall {found.recall:.3f}" if found.method == "approximate" else ""
    parts = f" in each of {found.parts} parts" if found.parts > 1 else ""
    return f"{found.method} graph of {event.target.k} neighbours{parts} in {event.seconds:.1f} s{recall}"


def _batches(event: StageBegan) -> str:
    planned = event.run.recipe.batches
    if not isinstance(planned, Auto) or event.target.k is None:
        return f"batches {event.batches}"
    met = event.target.k * planned.size / event.run.rows.shape[0]
    return f"batches {event.batches}, since a row meets k·b/n = {met:.2g} of its neighbours in a random batch"
