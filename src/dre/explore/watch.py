"""An observer that writes a page which follows the training, and becomes the page of the map at its end."""

from __future__ import annotations

import os
import warnings
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from dre.atomic import check_absent
from dre.data.subsample import to_array
from dre.explore.build import MAX_AXES, build_explorer, first_color, make_columns
from dre.explore.choices import choose_title
from dre.explore.page import Explorer, ShownMap, StageView, UnfinishedTraining
from dre.explore.training_page import TrainingPage, encode_frame, page_path
from dre.metrics.inputs import label_array
from dre.observe.checkpoints import StoppedBySignal
from dre.observe.pace import Pace
from dre.observe.sample import RunSample
from dre.training.events import CoordinatesMoved, EpochEnded, Event, StageEnded, StepEnded
from dre.training.run import Run

Array = np.ndarray[Any, Any]
MOST_ROWS = 10_000  # points of the page while it follows: more would take a noticeable part of a short fit
EVERY, SHARE = 1.0, 0.03  # seconds from one frame to the next, and the share of the time that frames may take
MOST_LOSSES = 200  # of a curve
BEFORE = "before the first stage"


class Watch:
    """Writes an HTML page that follows the training: points move, and a curve shows the loss. It works without a server.

    Open the page as soon as it is there. It has up to 10,000 rows, which can be pointed at, searched and colored. While it
    follows, a script lies beside it. At the end the page becomes that of the map, in one file, with stages, scores and
    trustworthiness of these rows, and open pages load it. ``dre.explore.build_explorer`` writes a page of all rows.

    If the fit fails or is stopped, the page keeps the last frame, and a badge and the side panel say why. If only its last page
    can't be made, that is a warning. Of several ranks, the first one writes, about its own rows.

    Parameters
    ----------
    path : path-like
        HTML file to write.
    labels : array-like of shape (n,), optional
        Colors of the points, one for each row of the data.
    label_name : str, default="labels"
    metadata : mapping of str to array of shape (n,), optional
        Columns of the page, as in ``build_explorer``.
    names : array-like of shape (n,), optional
        Names of the rows.
    title : str, optional
        Title of the page; default: the name of the file.
    show : bool, default=False
        Open the page in the browser.
    force : bool, default=False
        Overwrite an existing file.
    keep_open : bool, default=False
        Leave the page open after the fit, until ``finish(explorer)`` or ``fail(sentence)`` is called.

    Examples
    --------
    >>> DRE().fit(X, observers=[Watch("cells.html", labels=y, show=True)])  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        labels: Any = None,
        label_name: str = "labels",
        metadata: Mapping[str, Any] | None = None,
        names: Any = None,
        title: str | None = None,
        show: bool = False,
        force: bool = False,
        keep_open: bool = False,
    ) -> None:
        self.path = page_path(path)
        self.labels, self.label_name, self.metadata, self.names = labels, label_name, metadata, names
        self.title = title or self.path.stem
        self.show, self.force, self.keep_open = show, force, keep_open
        self._page: TrainingPage | None = None
        self._sample: RunSample
        self._reset()

    def _reset(self) -> None:
        self._pace = Pace(EVERY, SHARE)
        self._frames, self._stage = 0, BEFORE  # and the stage and epoch of the last frame
        self._losses: list[tuple[str, list[float]]] = []  # of each phase of a stage
        self._stages: list[tuple[str, Array]] = []  # the map after each stage

    def __enter__(self) -> Watch:
        self.fail("Another fit began before this page was finished.")  # of an earlier fit that was kept open
        self._reset()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._page is None:
            return
        if problem[0] is not None:
            state, reason = how_it_ended(problem[1])
            with suppress(Exception):  # the problem of the fit is the one to see
                self.fail(f"The training ended before the map was done: {reason}", state=state)
        elif self.keep_open:
            self._page.tell(state="finishing")
        else:
            self._page.tell(state="finishing")
            self._finish_or_warn()

    def __call__(self, event: Event) -> None:
        run = event.run
        if not run.ranks.is_first:
            return
        if self._page is None:
            self._begin(run)
        if isinstance(event, EpochEnded):
            self._note(event)
        elif isinstance(event, StageEnded):
            Y = self._coordinates(exact=True)
            self._stages.append((f"stage {run.stage} · {run.current_stage.source}", Y))
            self._show(Y, run)
        if isinstance(event, (CoordinatesMoved, StepEnded)) and self._pace.is_due():
            with self._pace.working():
                step = f", free step {event.step} of {run.current_stage.free}" if isinstance(event, CoordinatesMoved) else None
                self._show(self._coordinates(), run, step)

    def finish(self, explorer: Explorer | None = None) -> None:
        """Write the page of the map: the given one, or that of the rows that were shown."""
        if self._page is not None:
            self._page.finish(explorer or self._of_sample())
            self._page = None

    def fail(self, sentence: str, *, state: str = "unfinished") -> None:
        """Write a page with the last frame that says what happened; ``state`` is a word or two for its badge."""
        if self._page is not None:
            page, self._page = self._page, None
            unfinished = UnfinishedTraining(state, sentence, self._stage, self._curves())
            page.finish(self._explorer([("the last frame", self._last)], unfinished))

    def _finish_or_warn(self) -> None:
        """Finish the page. The map is done: a page that can't be made must not take it away."""
        try:
            self.finish()
        except Exception as problem:
            sentence = f"the page could not be made: {problem}"
            with suppress(Exception):
                self.fail(f"T{sentence[1:]}")
            warnings.warn(f"{self.path}: {sentence}. The fit is done", stacklevel=3)

    def _begin(self, run: Run) -> None:
        check_absent(self.path, force=self.force)
        self._sample = RunSample(run, MOST_ROWS)
        self._columns = {name: self._of_rows(values, name) for name, values in (self.metadata or {}).items()}
        if self.labels is not None:
            self._columns[self.label_name] = self._of_rows(self.labels, self.label_name)
        self._names = None if self.names is None else self._of_rows(self.names, "names")
        opened = TrainingPage(self.path)
        first = self._coordinates()
        opened.tell(stage=BEFORE)
        opened.show(encode_frame(first, 0))
        opened.open(self._explorer([("training", first)]))
        self._page = opened
        if self.show:
            webbrowser.open(self.path.resolve().as_uri())

    def _of_rows(self, values: Any, name: str) -> Array:
        found = self._sample.labels(label_array(values, len(values), name), name)
        assert found is not None
        return found

    def _coordinates(self, *, exact: bool = False) -> Array:
        """The components that a page shows."""
        Y = self._sample.coordinates(exact=exact)
        if Y.shape[1] < 2:
            raise ValueError("a page shows maps of two or three components, and this one has one: fit n_components=2")
        self._last = np.ascontiguousarray(Y if Y.shape[1] <= MAX_AXES else Y[:, :2])
        return self._last

    def _show(self, Y: Array, run: Run, step: str | None = None) -> None:
        assert self._page is not None
        if not np.isfinite(Y).all():  # the loop is about to say so
            return
        self._frames += 1
        self._page.show(encode_frame(Y, self._frames))
        epochs = run.current_stage.all_epochs
        where = f"stage {run.stage} ({run.current_stage.source})"
        self._stage = where + (step or f", epoch {min(run.epoch + 1, epochs)} of {epochs}")
        self._page.tell(stage=self._stage)

    def _note(self, event: EpochEnded) -> None:
        """Add a loss to the curve of its phase; losses of different targets can't be compared."""
        title = f"stage {event.run.stage}, {event.run.against}"
        if not self._losses or self._losses[-1][0] != title:
            self._losses.append((title, []))
        self._losses[-1][1].append(event.loss)
        assert self._page is not None
        self._page.tell(losses=self._curves())

    def _curves(self) -> list[list[Any]]:
        return [[name, thinned(values)] for name, values in self._losses]

    def _explorer(self, stages: list[tuple[str, Array]], unfinished: UnfinishedTraining | None = None) -> Explorer:
        """A page of the sample without anything that takes long, or that would soon be wrong."""
        color = self.label_name if self.labels is not None else None
        columns, _ = make_columns(self._columns, color)
        return Explorer(
            self.title,
            [ShownMap(self.title, [StageView(*stage) for stage in stages])],
            columns,
            None if self._names is None else [str(name) for name in self._names.tolist()],
            color=first_color(color, columns, []),
            title_column=choose_title(columns, has_names=self._names is not None),
            row_numbers=self._sample.ids_in_data,
            unfinished=unfinished,
        )

    def _of_sample(self) -> Explorer:
        """The page of the sample, with everything."""
        sample = self._sample
        run, n = sample.run, len(sample.ids)
        rows = None if run.origin is None or run.origin.metric.is_precomputed else to_array(run.origin.rows, sample.ids)
        measured, metric = sample.measured_rows(np.arange(n))
        made = build_explorer(
            self._stages or [("the last frame", self._coordinates(exact=True))],
            title=self.title,
            rows=measured if rows is None else rows,
            metric_rows=measured,
            metric=metric,
            metadata=self._columns,
            names=self._names,
            row_numbers=sample.ids_in_data,
            color=self.label_name if self.labels is not None else None,
            images=rows is not None,
        )
        if n < run.n_rows:
            made.notes.append(f"The page has {n:,} of {run.n_rows:,} rows.")
        return made


def how_it_ended(problem: object) -> tuple[str, str]:
    """Return what a badge says of an exception that ended a fit, and its reason in full.

    >>> how_it_ended(KeyboardInterrupt()), how_it_ended(OSError("the disk is full"))
    (('stopped by Ctrl-C', 'stopped by Ctrl-C'), ('failed', 'OSError: the disk is full'))
    """
    if isinstance(problem, KeyboardInterrupt):
        stopped = "stopped by Ctrl-C"
    elif isinstance(problem, StoppedBySignal):
        stopped = f"stopped by {problem.signal}"
    else:
        return "failed", f"{type(problem).__name__}: {problem}".rstrip(": ")
    return stopped, stopped


def thinned(values: list[float]) -> list[float]:
    """At most 200 of the values, evenly spaced, with the last.

    >>> thinned([3.0, 2.0]), len(thinned([1.0] * 1000))
    ([3.0, 2.0], 200)
    """
    at = np.linspace(0, len(values) - 1, min(MOST_LOSSES, len(values))).round().astype(int)
    return [float(f"{values[i]:.5g}") for i in at]
