"""Observers that tell of a run: its progress for a display, and the lines that ``verbose=True`` prints."""

from __future__ import annotations

import time

from dre.affinity.target import Graph
from dre.batches import Auto
from dre.progress.activity import Activity, begin, end
from dre.progress.display import say
from dre.training.events import (
    CoordinatesMoved,
    EpochEnded,
    Event,
    StageBegan,
    StageEnded,
    StageSkipped,
    StageUndone,
    StepEnded,
    TargetBegan,
)
from dre.training.run import Run


class Progress:
    """Turns the events of a run into an activity per stage, with epoch, loss and rows per second; a display shows them."""

    def __init__(self) -> None:
        self._stage: Activity | None = None
        self._free: Activity | None = None  # the free coordinates, inside of the stage
        self._rows, self._loss = 0, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self._end()

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepEnded):
            self._step(event)
        elif isinstance(event, CoordinatesMoved):
            self._free = self._free or begin("coordinates", event.run.current_stage.free)
            self._free.done = event.step
        elif isinstance(event, TargetBegan) and event.run.epoch == 0:
            self._begin(event.run)
        elif isinstance(event, StageBegan):
            self._train(event)
        elif isinstance(event, EpochEnded):
            self._loss = f"loss {event.loss:.4g}"
        elif isinstance(event, (StageEnded, StageUndone, StageSkipped)):
            self._end()

    def _begin(self, run: Run) -> Activity:
        self._end()
        self._stage = begin(f"stage {run.stage} ({run.current_stage.source})")
        self._stage.scope = "this stage" if run.stage + 1 < len(run.recipe.schedule) else ""
        return self._stage

    def _train(self, event: StageBegan) -> None:
        """Count the steps, from now on: the time until here says nothing about them."""
        if self._free is not None:
            end(self._free)
            self._free = None
        stage = self._stage or self._begin(event.run)  # a run that is resumed within a stage
        stage.total, stage.done, stage.began = event.steps, 0, time.monotonic()
        self._rows, self._loss = 0, ""

    def _step(self, event: StepEnded) -> None:
        stage = self._stage
        if stage is None:
            return
        self._rows += event.rows
        stage.done += 1
        rate = f"{self._rows / max(1e-9, stage.seconds):,.0f} rows/s"
        epochs = f"epoch {event.run.epoch + 1} of {event.run.current_stage.all_epochs}"
        stage.note = ", ".join(filter(None, (epochs, self._loss, rate)))

    def _end(self) -> None:
        for part in (self._free, self._stage):
            if part is not None:
                end(part)
        self._free = self._stage = None


class Verbose:
    """Lines on stderr: the recipe, then each stage's target, batches and last loss.

    Parameters
    ----------
    note : str, optional
        Printed behind the recipe: why it is as it is.
    """

    def __init__(self, note: str | None = None) -> None:
        self._note = note
        self._loss, self._seconds = 0.0, 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            if event.run.stage == 0:
                size, shape = event.run.ranks.size, event.run.rows.shape[1:]
                ranks = "" if size == 1 else f", {size} ranks; batches are those of one of them"
                say(f"dre on {event.run.runtime}, {event.run.n_rows} rows of shape {tuple(shape)}{ranks}\n{event.run.recipe}")
                if self._note is not None:
                    say(self._note)
            self._seconds = 0.0
            say(f"stage {event.run.stage} ({event.run.current_stage.source}): {_target(event)}, {_batches(event)}")
        elif isinstance(event, EpochEnded):
            self._loss, self._seconds = event.loss, self._seconds + event.seconds
        elif isinstance(event, StageEnded):
            kept = "" if event.trust is None else f"; kept, {_trust(event.trust)}"
            epochs = f"{event.run.epoch + 1} epochs"
            say(f"stage {event.run.stage} done: {epochs}, loss {self._loss:.4g}, {self._seconds:.1f} s{kept}")
        elif isinstance(event, StageUndone):
            say(f"stage {event.run.stage} undone, and the fit ended: {_trust(event.trust)}")
        elif isinstance(event, StageSkipped):
            loss = f"the map's loss is {event.loss[0]:.4g} on the neighborhoods before, {event.loss[1]:.4g} on its own"
            say(f"stage {event.run.stage} skipped, and the fit ended: {loss}")


class PartsNote:
    """One line on stderr for each graph in parts: they are for many rows or little memory, which a user should know."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan) and isinstance(event.target, Graph) and event.target.search.parts > 1:
            say(f"dre: stage {event.run.stage} ({event.run.current_stage.source}): {_target(event)}")


def _trust(before_after: tuple[float, float]) -> str:
    before, after = before_after
    return f"trustworthiness {before:.4f} before it, {after:.4f} after"


def _target(event: StageBegan) -> str:
    if not isinstance(event.target, Graph):
        return "target inside each batch"
    search = event.target.search
    recall = f", recall {search.recall:.3f}" if search.method.startswith("approximate") else ""
    parts = f" in each of {search.parts} random parts" if search.parts > 1 else ""
    size = f", {event.target.nbytes / 2**20:,.0f} MiB"
    free = event.run.current_stage.free
    steps = f", {free} free steps in {event.free_seconds:.1f} s" if free and event.free_seconds else ""
    return f"{search.method} graph of {event.target.k} neighbors{parts} in {event.seconds:.1f} s{recall}{size}{steps}"


def _batches(event: StageBegan) -> str:
    planned = event.run.recipe.batches
    if not isinstance(planned, Auto) or event.target.k is None or event.run.against not in ("batch", "ranks"):
        return f"batches {event.batches}"
    met = event.target.k * planned.size / event.run.rows.shape[0]
    return f"batches {event.batches}, since a row meets k·b/n = {met:.2g} of its neighbors in a random batch"
