"""Progress bars, and the lines that ``verbose=True`` prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dre.affinity.target import Graph
from dre.batches import Auto
from dre.training.events import EpochEnded, Event, StageBegan, StageEnded, StageSkipped, StageUndone, StepEnded, TargetBegan
from dre.training.run import Run

# In a log file, where a bar is not overwritten in place, it is drawn rarely.
SECONDS_BETWEEN = {True: 0.1, False: 10.0}
ANNOUNCED = 10_000  # rows from which the neighbor search takes seconds
FORMAT = "{desc} |{bar}| {elapsed}<{remaining}{postfix}"  # no percentage: the epoch says it, and a line has 80 columns


def is_interactive() -> bool:
    """Whether the output is a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def progress_bar(title: str, total: int, *, verbose: bool | None = None, delay: float = 1.0) -> Iterator[Callable[..., object]]:
    """Yield what to call after each step; ``verbose=None`` shows a bar in a terminal or a notebook only.

    Work that takes less than ``delay`` seconds shows none.
    """
    from tqdm.auto import tqdm

    interactive = is_interactive()
    shown = verbose or (verbose is None and interactive)
    interval = SECONDS_BETWEEN[interactive]
    with tqdm(total=total, desc=title, disable=not shown, delay=delay, mininterval=interval, leave=False) as bar:
        yield bar.update


class Progress:
    """A bar per stage with epoch, loss, rows per second and remaining time; it appears after ``delay`` seconds."""

    def __init__(self, delay: float = 1.0) -> None:
        self._delay = delay
        self._bar: Any = None
        self._rows, self._began, self._loss = 0, 0.0, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self._close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepEnded):
            self._rows += event.rows
            if self._bar.update():  # true if it was drawn: no need to describe it more often
                self._describe(event)
        elif isinstance(event, TargetBegan):
            self._announce(event)
        elif isinstance(event, StageBegan):
            self._open(event)
        elif isinstance(event, EpochEnded):
            self._loss = f"loss {event.loss:.4g}"
        elif isinstance(event, (StageEnded, StageUndone, StageSkipped)):
            self._close()

    def _announce(self, event: TargetBegan) -> None:
        if event.run.epoch == 0 and is_interactive() and event.run.rows.shape[0] >= ANNOUNCED:
            from tqdm.auto import tqdm

            self._close()
            self._bar = tqdm(desc=f"{_title(event.run)}: finding neighbors", bar_format="{desc}", leave=False)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _open(self, event: StageBegan) -> None:
        from tqdm.auto import tqdm

        self._close()
        run = event.run
        self._rows, self._began, self._loss = 0, time.perf_counter(), ""
        self._bar = tqdm(
            total=event.steps,
            desc=_title(run),
            bar_format=FORMAT,
            delay=self._delay,
            mininterval=SECONDS_BETWEEN[is_interactive()],
            leave=False,
        )

    def _describe(self, event: StepEnded) -> None:
        rate = self._rows / max(1e-9, time.perf_counter() - self._began)
        parts = [f"epoch {event.run.epoch + 1}/{event.run.current_stage.all_epochs}", self._loss, f"{rate:,.0f} rows/s"]
        self._bar.set_postfix_str(", ".join(filter(None, parts)), refresh=False)


def _title(run: Run) -> str:
    return f"stage {run.stage} ({run.current_stage.source})"


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
                n, *shape = event.run.rows.shape
                self._print(f"dre on {event.run.runtime}, {n} rows of shape {tuple(shape)}\n{event.run.recipe}")
                if self._note is not None:
                    self._print(self._note)
            self._seconds = 0.0
            self._print(f"stage {event.run.stage} ({event.run.current_stage.source}): {_target(event)}, {_batches(event)}")
        elif isinstance(event, EpochEnded):
            self._loss, self._seconds = event.loss, self._seconds + event.seconds
        elif isinstance(event, StageEnded):
            kept = "" if event.trust is None else f"; kept, {_trust(event.trust)}"
            epochs = f"{event.run.epoch + 1} epochs"
            self._print(f"stage {event.run.stage} done: {epochs}, loss {self._loss:.4g}, {self._seconds:.1f} s{kept}")
        elif isinstance(event, StageUndone):
            self._print(f"stage {event.run.stage} undone, and the fit ended: {_trust(event.trust)}")
        elif isinstance(event, StageSkipped):
            loss = f"the map's loss is {event.loss[0]:.4g} on the neighborhoods before, {event.loss[1]:.4g} on its own"
            self._print(f"stage {event.run.stage} skipped, and the fit ended: {loss}")

    @staticmethod
    def _print(text: str) -> None:
        print(text, file=sys.stderr)


def _trust(before_after: tuple[float, float]) -> str:
    before, after = before_after
    return f"trustworthiness {before:.4f} before it, {after:.4f} after"


def _target(event: StageBegan) -> str:
    if not isinstance(event.target, Graph):
        return "target inside each batch"
    search = event.target.search
    recall = f", recall {search.recall:.3f}" if search.method == "approximate" else ""
    parts = f" in each of {search.parts} parts" if search.parts > 1 else ""
    free = event.run.current_stage.free
    steps = f", {free} free steps in {event.free_seconds:.1f} s" if free and event.free_seconds else ""
    return f"{search.method} graph of {event.target.k} neighbors{parts} in {event.seconds:.1f} s{recall}{steps}"


def _batches(event: StageBegan) -> str:
    planned = event.run.recipe.batches
    if not isinstance(planned, Auto) or event.target.k is None or event.run.against != "batch":
        return f"batches {event.batches}"
    met = event.target.k * planned.size / event.run.rows.shape[0]
    return f"batches {event.batches}, since a row meets k·b/n = {met:.2g} of its neighbors in a random batch"
