"""--watch and --tensorboard of ``dre fit``: what shows a training, and the page that remains of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre.cli.echo import echo
from dre.cli.options import UsageError
from dre.explore import Watch, build_explorer
from dre.explore.build import MAX_POINTS
from dre.explore.training_page import TrainingPage, page_path
from dre.io.readers.source import Source
from dre.io.writers import check_writable
from dre.observe import Observer
from dre.observe.tensorboard import EVENTS, TensorBoard
from dre.progress.activity import activity

if TYPE_CHECKING:
    from dre.model.estimator import DRE


def check_view_options(
    output: Path,
    watch: bool,
    page: Path | None,
    show: bool,
    tensorboard: Path | None,
    *,
    data: Path | None,
    n_components: int,
    resume: bool,
    force: bool,
) -> Path | None:
    """Check the options before the rows are read; return the page to write, or None."""
    if tensorboard is not None and tensorboard.exists() and not tensorboard.is_dir():
        raise UsageError(f"--tensorboard {tensorboard}: this is a file; choose a folder, which may be a new one")
    if tensorboard is not None:
        there = next(each for each in (tensorboard.absolute(), *tensorboard.absolute().parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise UsageError(f"--tensorboard {tensorboard}: {there} is not a writable folder; choose another one")
    if tensorboard is not None and not (resume or force) and any(tensorboard.glob(EVENTS)):
        raise UsageError(
            f"--tensorboard {tensorboard}: the folder has the events of another fit, which would be mixed with these: choose "
            "another folder, or pass --force to remove them"
        )
    if not watch and page is None:
        if show:
            raise UsageError("--open opens the page of --watch: pass --watch too")
        return None
    if n_components < 2:
        raise UsageError(f"--watch shows maps of two or three components, not of {n_components}: drop it")
    target = page_path(output.with_suffix(".html") if page is None else page)
    # A fit that was killed has left its page there.
    check_writable(target, [".html", ".htm"], force=force or resume, read=[data])
    TrainingPage(target).check()
    return target


class FitViews:
    """What shows a training, as the options say.

    Parameters
    ----------
    source : Source
        The rows, without labels.
    classes : mapping of str to array of shape (n,)
        Labels by name; the first one colors the points.
    page : Path or None
        Of --watch.
    show : bool
    tensorboard : Path or None
    may_overwrite : bool
        Whether the page, and events of a fit that made no checkpoint, may be replaced.
    is_first : bool
        Whether this process shows anything; of several ranks, the first.
    """

    def __init__(
        self,
        source: Source,
        classes: Mapping[str, Any],
        *,
        page: Path | None,
        show: bool,
        tensorboard: Path | None,
        may_overwrite: bool,
        is_first: bool = True,
    ) -> None:
        self._source, self._classes = source, classes
        self._color, labels = next(iter(classes.items()), ("labels", None))
        self._page: Watch | None = None
        self.observers: list[Observer] = []
        if page is not None and is_first:
            columns = {**source.metadata, **classes}
            self._page = AnnouncedWatch(
                page,
                labels=columns.pop(self._color, None) if labels is not None else None,
                label_name=self._color,
                metadata=columns,
                names=source.names,
                show=show,
                force=may_overwrite,
                keep_open=True,
            )
            self.observers.append(self._page)
        if tensorboard is not None and is_first:
            self.observers.append(TensorBoard(tensorboard, labels=labels, label_name=self._color, force=may_overwrite))

    def finish(self, model: DRE) -> None:
        """Write the page of the map: that of all rows, or of those that were shown if a browser can't hold all."""
        if self._page is None:
            return
        n = self._source.rows.shape[0]
        with activity("making the page"):
            self._page.finish(None if n > MAX_POINTS else self._explorer(model))

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Let the page say so if the work after the training fails; the training itself has told its page."""
        try:
            yield
        except KeyboardInterrupt:
            with suppress(Exception):
                self.fail(
                    "Ctrl-C stopped the command after the training, before its results were saved.", state="stopped by Ctrl-C"
                )
            raise
        except BaseException as problem:
            with suppress(Exception):  # the first problem is the one to see
                self.fail(f"The command failed after the training: {type(problem).__name__} {problem}".strip(), state="failed")
            raise

    def fail(self, sentence: str, *, state: str = "unfinished") -> None:
        """Let the page end with its last frame, this sentence, and a word or two on a badge."""
        if self._page is not None:
            self._page.fail(sentence, state=state)

    def _explorer(self, model: DRE) -> Any:
        from dre.cli.explore import page_metadata
        from dre.cli.map import load_map

        assert self._page is not None
        loaded = load_map("the model", self._source, model, every_stage=True)
        loaded = replace(loaded, metadata={**loaded.metadata, **self._classes})
        metadata, _ = page_metadata(loaded, None, None)
        return build_explorer(
            list(zip(loaded.short_titles, loaded.stages, strict=True)),
            title=self._page.title,
            rows=loaded.rows,
            metric_rows=loaded.metric_rows,
            metric=loaded.metric,
            metadata=metadata,
            names=loaded.names,
            names_title=self._source.names_title,
            row_numbers=None if loaded.dropped is None else loaded.dropped.kept.nonzero()[0],
            feature_names=loaded.columns,
            color=self._color if self._classes else None,
        )


class AnnouncedWatch(Watch):
    """A page whose path is printed when it is there."""

    def _begin(self, run: Any) -> None:
        super()._begin(run)
        echo(f"dre: {self.path} follows the training: open it in a browser", err=True)
