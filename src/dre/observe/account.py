"""What a fit did, for the summary of a model: seconds and outcome of each stage, and the trustworthiness of the map."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dre.data.rows import is_stream
from dre.data.subsample import evenly_spaced_ids
from dre.training.events import Event, StageBegan, StageEnded, StageSkipped, StageUndone
from dre.training.run import Run
from dre.training.trust import sample_trust

JUDGED = 5_000  # rows among which the trustworthiness is measured: it takes less than a hundredth of a short fit


@dataclass
class StageAccount:
    """What a stage took beside its epochs, and what became of it."""

    graph_seconds: float = 0.0  # of the search for neighbors
    free_seconds: float = 0.0  # of the free steps
    outcome: str = ""  # "", "undone" or "skipped"
    trust: tuple[float, float] | None = None  # before and after an optional stage, as it was judged


@dataclass
class Account:
    """An observer that notes what the history does not have.

    Attributes
    ----------
    stages : dict of int to StageAccount
    rows : int
        That were fitted.
    runtime : str
        Device and precision.
    seconds : float
        From the first event to the map of all rows.
    trust : float or None
        Trustworthiness of the map, on a sample, by what the network reads. None if the rows are a stream.
    """

    stages: dict[int, StageAccount] = field(default_factory=dict)
    rows: int = 0
    runtime: str = ""
    seconds: float = 0.0
    trust: float | None = None
    _run: Run | None = field(default=None, repr=False)
    _began: float = field(default_factory=time.monotonic, repr=False)

    def __call__(self, event: Event) -> None:
        self._run = event.run
        stage = self.stages.setdefault(event.run.stage, StageAccount())
        if isinstance(event, StageBegan):
            stage.graph_seconds, stage.free_seconds = event.seconds, event.free_seconds
        elif isinstance(event, (StageEnded, StageUndone)):
            stage.trust = event.trust
            stage.outcome = "undone" if isinstance(event, StageUndone) else ""
        elif isinstance(event, StageSkipped):
            stage.outcome = "skipped"

    def close(self, embedding: np.ndarray[Any, Any]) -> Account:
        """Note the end, with the map of the rows of this process, and let go of the run."""
        run, self._run = self._run, None
        if run is not None:
            self.rows, self.runtime = run.n_rows, str(run.runtime)
            self.trust = self._judged(run.stage)
            if self.trust is None and not is_stream(run.learner.rows):
                ids = torch.from_numpy(evenly_spaced_ids(len(embedding), JUDGED))
                features = run.learner.features(run.learner.first_source, ids.to(run.runtime.device))
                self.trust = sample_trust(features, torch.from_numpy(embedding)[ids].to(features.device))
        self.seconds = time.monotonic() - self._began
        return self

    def _judged(self, last: int) -> float | None:
        """The trustworthiness of the map, if the loop has measured it at the end of the last stage."""
        stage = self.stages[last]
        return None if stage.trust is None else stage.trust[0 if stage.outcome == "undone" else 1]
