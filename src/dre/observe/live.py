"""An observer that redraws the map in a notebook while it is trained."""

from __future__ import annotations

import html
import sys
import time
import warnings
from contextlib import nullcontext, suppress
from typing import Any, Protocol

import numpy as np

from dre.observe.pace import Pace
from dre.observe.sample import RunSample
from dre.plot.colors import Categorical, Coloring, color_by
from dre.plot.raster import image_element, point_colors
from dre.training.events import (
    CoordinatesMoved,
    EpochEnded,
    Event,
    StageBegan,
    StageEnded,
    StageSkipped,
    StageUndone,
    StepEnded,
)

EVERY = 1.0  # second, at least, from one picture to the next
SHARE = 0.04  # of the time that pictures may take
MOST_ROWS = 5_000  # of a picture
SHOWN = 360  # pixels of the place where a picture is shown
NAMED = 20  # classes in the legend
NO_NOTEBOOK = (
    "live=True redraws the map in a notebook, and this is none: the fit goes on without pictures. "
    "`dre fit --watch` and observers=[dre.explore.Watch('map.html')] follow a fit in a browser"
)


class Display(Protocol):
    """What shows a picture and replaces it: that of IPython, ``display(..., display_id=True)``."""

    def update(self, bundle: dict[str, str], raw: bool = True) -> None: ...


class Live:
    """Redraws the map below the cell of a notebook, about once a second, and leaves the last one there.

    ``fit(X, y, live=True)`` uses it. A picture has up to 5,000 rows and the first two components. The slower it is to draw, the
    less often it comes, so that it takes at most a twentieth of the time. Outside of a notebook it warns once and does nothing.

    Parameters
    ----------
    labels : array-like of shape (n,), optional
        Colors of the points, one for each row of the data.
    label_name : str, default="labels"
    every : float, default=1.0
        Seconds, at least, from one picture to the next.

    Examples
    --------
    >>> DRE().fit(X, observers=[Live(labels=y, every=0.5)])  # doctest: +SKIP
    """

    def __init__(self, *, labels: Any = None, label_name: str = "labels", every: float = EVERY) -> None:
        if not every >= 0:
            raise ValueError(f"every={every}: must be a number of seconds, 0 or more")
        self.labels, self.label_name, self.every = labels, label_name, every
        self._display: Display | None = None
        self._sample: RunSample | None = None
        self._pace, self._began = Pace(every, SHARE), 0.0
        self._loss, self._ended = "", ""

    def __enter__(self) -> Live:
        self._display = open_display()
        if self._display is None:
            warnings.warn(NO_NOTEBOOK, stacklevel=7)  # the line that called fit
        self._sample, self._pace, self._began = None, Pace(self.every, SHARE), time.monotonic()
        self._loss, self._ended = "", ""
        return self

    def __exit__(self, *problem: object) -> None:
        if self._display is not None and self._sample is not None:
            if problem[0] is not None:
                self._ended = "the fit failed"
            # A picture that can't be drawn must not hide the problem of the fit.
            with nullcontext() if problem[0] is None else suppress(Exception):
                self._draw(is_last=True)
        self._display = None

    def __call__(self, event: Event) -> None:
        if self._display is None or not event.run.ranks.is_first:
            return
        if self._sample is None:
            self._begin(event)
        if isinstance(event, StageBegan):
            self._loss = ""
        elif isinstance(event, EpochEnded):
            self._loss = f"loss {event.loss:.4g}"
        elif isinstance(event, StageUndone):
            self._ended = f"stage {event.run.stage} undone"
        elif isinstance(event, StageSkipped):
            self._ended = f"stage {event.run.stage} skipped"
        moved = isinstance(event, (CoordinatesMoved, StepEnded, StageEnded))
        if moved and self._pace.is_due():
            with self._pace.working():
                self._draw(f", free step {event.step}" if isinstance(event, CoordinatesMoved) else "")

    def _begin(self, event: Event) -> None:
        sample = RunSample(event.run, MOST_ROWS)
        coloring: Coloring = color_by(sample.labels(self.labels), len(sample.ids), self.label_name)
        self._colors = point_colors(coloring, len(sample.ids))
        self._legend = _legend(coloring)
        self._sample = sample  # last: from now on there is something to draw

    def _draw(self, step: str = "", *, is_last: bool = False) -> None:
        assert self._sample is not None
        assert self._display is not None
        run = self._sample.run
        Y = self._sample.coordinates(exact=is_last)
        epochs = run.current_stage.all_epochs
        where = f"stage {run.stage} ({run.current_stage.source})"
        if is_last:
            state = self._ended or ("ended early" if run.ending == "fit" else "done")
            parts = [state, f"{run.steps:,} steps", self._loss, f"{time.monotonic() - self._began:.1f} s"]
        else:
            parts = [where + (step or f", epoch {min(run.epoch + 1, epochs)} of {epochs}"), self._loss]
        if len(Y) < run.n_rows:
            parts.append(f"{len(Y):,} of {run.n_rows:,} rows")
        title = " · ".join(filter(None, parts))
        self._display.update(bundle(Y, self._colors, title, self._legend), raw=True)


def bundle(Y: np.ndarray[Any, Any], colors: np.ndarray[Any, Any], title: str, legend: str = "") -> dict[str, str]:
    """A picture with a title, as notebooks show it: HTML, and a line of text for other front ends."""
    heading = f'<div style="font:13px system-ui,sans-serif;margin:2px 0 6px">{html.escape(title)}</div>'
    picture = image_element(Y, colors, SHOWN, alt=f"map: {title}")
    shown = f'<div style="max-width:100%">{heading}{picture}{legend}</div>'
    return {"text/html": shown, "text/plain": title}


def _legend(coloring: Coloring) -> str:
    """The classes with their colors, as HTML."""
    if not isinstance(coloring, Categorical) or len(coloring.names) > NAMED:
        return ""
    entries = []
    for name, color in zip(coloring.names, coloring.colors, strict=True):
        red, green, blue = (round(255 * part) for part in color)
        dot = (
            f"display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:4px;background:rgb({red},{green},{blue})"
        )
        entries.append(f'<span style="margin-right:12px"><span style="{dot}"></span>{html.escape(str(name)[:40])}</span>')
    return f'<div style="font:12px system-ui,sans-serif;margin:4px 0;max-width:{SHOWN}px">{"".join(entries)}</div>'


def open_display() -> Display | None:
    """Return a place below the cell of a notebook; None if there is no notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):  # a terminal shows no pictures
        return None
    found: Display | None = display({"text/plain": "…"}, raw=True, display_id=True)
    return found
