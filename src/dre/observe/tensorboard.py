"""An observer that writes a fit for TensorBoard: losses, learning rate, scores of each stage, and the map as a picture."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from dre.atomic import WriteError
from dre.observe.pace import Pace
from dre.observe.sample import RunSample
from dre.plot.colors import Coloring, color_by
from dre.plot.raster import draw_points, encode_png, point_colors
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
from dre.training.run import Run

INSTALL = "TensorBoard's files need its package: pip install 'deep-recursive-embedding[tensorboard]'"
EVENTS = "events.out.tfevents.*"
MOST_STEPS = 1000  # of a stage whose losses are written; TensorBoard shows no more
MOST_ROWS = 10_000  # of a picture
FREE_STEPS = 50  # from one picture of free coordinates to the next
SHARE = 0.02  # of the time that pictures within a stage may take
SIDE = 640  # pixels of the longer side
WHITE = "#ffffff"


class TensorBoard:
    """Writes a fit to a folder that ``tensorboard --logdir FOLDER`` shows.

    Losses of different targets can't be compared, so each has a curve of its own: ``loss/stage 0, coordinates`` while the
    network follows coordinates, then ``loss/stage 0, bank``. ``steps`` has the loss of single steps. ``scores`` are those that
    ``dre fit`` prints, of up to 1,000 rows after each stage. ``map`` has pictures of up to 10,000 rows.

    Of several ranks, the first one writes, about its own rows. The result of a fit does not depend on it.

    Parameters
    ----------
    folder : path-like
    labels : array-like of shape (n,), optional
        One for each row of the data: colors of the pictures, and classes whose 1-NN accuracy is among the scores.
    label_name : str, default="labels"
    every : int, default=5
        Epochs from one picture to the next; fewer are drawn if they would take more than 2 % of the time.
    force : bool, default=False
        Remove the events of another fit from the folder. A fit that is resumed adds to its own.

    Examples
    --------
    >>> DRE().fit(X, observers=[TensorBoard("runs/cells", labels=y)])  # doctest: +SKIP
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        labels: Any = None,
        label_name: str = "labels",
        every: int = 5,
        force: bool = False,
    ) -> None:
        if every < 1:
            raise ValueError(f"every={every}: must be at least 1")
        self.folder, self.labels, self.label_name, self.every, self.force = Path(folder), labels, label_name, every, force
        self._open = _import_writer()
        self._writer: Any = None
        self._sample: RunSample
        self._reset()

    def _reset(self) -> None:
        self._losses: list[tuple[int, Tensor]] = []  # of steps, with their numbers; read as epochs end
        self._stride = 1  # steps from one loss to the next
        self._pace = Pace(0.0, SHARE)  # of pictures
        self._scores: dict[str, float] = {}  # after the last stage

    def __enter__(self) -> TensorBoard:
        self._reset()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._writer is not None:
            if problem[0] is None:
                self._write_settings()
            self._writer.close()
            self._writer = None

    def __call__(self, event: Event) -> None:
        if not event.run.ranks.is_first:
            return
        if self._writer is None:
            self._begin(event.run)
        if isinstance(event, StepEnded):
            if event.run.steps % self._stride == 0:
                self._losses.append((event.run.steps, event.loss))
        elif isinstance(event, CoordinatesMoved):
            self._write_free(event)
        elif isinstance(event, StageBegan):
            self._stride = -(-event.steps // MOST_STEPS) or 1
        elif isinstance(event, EpochEnded):
            self._write_epoch(event)
        elif isinstance(event, (StageEnded, StageUndone, StageSkipped)):
            self._write_stage(event)

    def _begin(self, run: Run) -> None:
        is_new = run.steps == 0 and run.resumed is None
        earlier = list(self.folder.glob(EVENTS))
        if earlier and is_new and not self.force:
            raise FileExistsError(
                f"{self.folder} has the events of another fit, which would be mixed with these: choose another folder, or pass "
                "force=True to remove them"
            )
        self._sample = RunSample(run, MOST_ROWS)
        self._classes = self._sample.labels(self.labels)
        coloring: Coloring = color_by(self._classes, len(self._sample.ids), self.label_name)
        self._colors = point_colors(coloring, len(self._sample.ids))
        for file in earlier if is_new else []:  # now that the labels are known to suit the rows
            file.unlink()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise WriteError(f"{self.folder} cannot be made a folder: {problem.strerror}; choose another one") from problem
        self._writer = self._open(str(self.folder), purge_step=None if is_new else run.steps + 1)
        shape = " × ".join(map(str, run.rows.shape[1:]))
        about = [f"{run.n_rows:,} rows of {shape} values on {run.runtime}", *str(run.recipe).splitlines()]
        self._writer.add_text("recipe", "\n".join(f"    {line}" for line in about))  # a block of code

    def _write_free(self, event: CoordinatesMoved) -> None:
        if event.step % FREE_STEPS and event.step != event.run.current_stage.free:
            return
        tag = f"stage {event.run.stage}, free coordinates"
        Y = self._sample.coordinates()
        self._writer.add_scalar(f"extent/{tag}", float(np.sqrt(Y.var(0).sum())), event.step)
        if self._pace.is_due():
            self._draw(f"map/{tag}", Y, event.step)

    def _write_epoch(self, event: EpochEnded) -> None:
        run = event.run
        tag = f"stage {run.stage}, {run.against}"
        for step, loss in self._losses:
            self._writer.add_scalar(f"steps/{tag}", float(loss), step)
        self._losses.clear()
        self._writer.add_scalar(f"loss/{tag}", event.loss, run.steps)
        self._writer.add_scalar("speed/rows per second", event.rows / max(1e-9, event.seconds), run.steps)
        if run.optimizer is not None:
            self._writer.add_scalar("learning rate", float(run.optimizer.rate), run.steps)
        if (run.epoch + 1) % self.every == 0 and self._pace.is_due():
            self._draw(f"map/stage {run.stage}", self._sample.coordinates(), run.steps)

    def _write_stage(self, event: StageEnded | StageUndone | StageSkipped) -> None:
        run = event.run
        trust = getattr(event, "trust", None)
        if trust is not None:
            for name, value in zip(("before", "after"), trust, strict=True):
                self._writer.add_scalar(f"judgment/trustworthiness {name}", value, run.stage)
        if isinstance(event, StageSkipped):
            for name, value in zip(("before", "of the stage"), event.loss, strict=True):
                self._writer.add_scalar(f"judgment/loss on the neighborhoods {name}", value, run.stage)
        if not isinstance(event, StageEnded):
            kind = "undone" if isinstance(event, StageUndone) else "skipped"
            self._writer.add_text("stages", f"stage {run.stage} {kind}, and the fit ended", run.stage)
            return
        Y = self._sample.coordinates(exact=True)
        self._scores = self._sample.scores(Y, self._classes, self.label_name)
        for name, value in self._scores.items():
            self._writer.add_scalar(f"scores/{name}", value, run.stage)
        self._draw(f"map/stage {run.stage}", Y, run.steps)

    def _draw(self, tag: str, Y: np.ndarray[Any, Any], step: int) -> None:
        """Write a picture; its first two components, of a map with more."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        with self._pace.working():
            pixels = draw_points(Y, self._colors, SIDE, background=WHITE)
            height, width, channels = pixels.shape
            image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encode_png(pixels))
            self._writer.file_writer.add_summary(Summary(value=[Summary.Value(tag=tag, image=image)]), step)

    def _write_settings(self) -> None:
        """The recipe and the last scores, as TensorBoard compares them among runs."""
        from torch.utils.tensorboard.summary import hparams

        run = self._sample.run
        recipe = run.recipe
        settings = {
            "rows": run.n_rows,
            "schedule": str(recipe.schedule),
            "encoder": str(recipe.encoder),
            "batches": str(recipe.batches),
            "optimizer": str(recipe.optimizer),
            "learning rate": recipe.optimizer.lr,
            "random_state": self._random_state(),
        }
        for part in hparams(settings, {f"scores/{name}": value for name, value in self._scores.items()}):
            self._writer.file_writer.add_summary(part)

    def _random_state(self) -> int | str:
        """The seed as the user has passed it, to fit with it again; the name of its class if it is no number."""
        given = None if self._sample.run.origin is None else self._sample.run.origin.random_state
        if isinstance(given, Integral):
            return int(given)
        return "None" if given is None else type(given).__name__


def _import_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as problem:
        raise ImportError(INSTALL) from problem
    return SummaryWriter
