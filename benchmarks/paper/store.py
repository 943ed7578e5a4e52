"""The records of finished cells, one JSON file each, and their maps: what makes a run resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.compare.jobs import command
from dre.compare.plan import Job
from dre.compare.plans import Plans
from dre.compare.record import provenance, write

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cells:
    """``records``: small, kept with the project. ``maps``: large, for the figures of this machine."""

    records: Path
    maps: Path

    def path(self, job: Job) -> Path:
        return self.records / f"{_file_name(job)}.json"

    def find(self, job: Job) -> dict[str, Any] | None:
        """The record of a job, also of one that failed; None before it was tried."""
        try:
            content: dict[str, Any] = json.loads(self.path(job).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return content

    def is_done(self, job: Job, plans: Plans) -> bool:
        """Whether there is a result of this job as it is planned now."""
        found = self.find(job)
        return found is not None and "failed" not in found and found["plan"] == planned(job, plans)

    def keep(self, job: Job, record: dict[str, Any]) -> None:
        write(self.path(job), record)

    def keep_failure(self, job: Job, plans: Plans, problem: str) -> None:
        about = {"plan": planned(job, plans), "job": asdict(job), "failed": problem}
        self.keep(job, {**about, **provenance(), "command": command(job, plans)})

    def keep_maps(self, job: Job, maps: dict[str, Array]) -> None:
        path = self._maps_path(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, **maps)  # type: ignore[arg-type]
        part.replace(path)

    def map(self, job: Job, part: str, stage: int | None) -> Array | None:
        """The map of the training or the test rows after a stage (None: the last); None where it is not on this machine."""
        path, record = self._maps_path(job), self.find(job)
        if record is None or "failed" in record or not path.is_file():
            return None
        name = f"{part}-{len(record['stages']) - 1 if stage is None else stage}"
        with np.load(path) as held:
            return held[name] if name in held.files else None

    def all(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.records.glob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))

    def _maps_path(self, job: Job) -> Path:
        return self.maps / f"{_file_name(job)}.npz"


def planned(job: Job, plans: Plans) -> dict[str, Any]:
    """What a record was made from; where the plan says otherwise now, the cell is run again."""
    data, run = asdict(plans.data[job.data]), asdict(plans.runs[job.run])
    for unimportant in ("title", "name", "spread", "quick"):
        data.pop(unimportant, None)
        run.pop(unimportant, None)
    return json.loads(json.dumps({"data": data, "run": run}))  # type: ignore[no-any-return]


def _file_name(job: Job) -> str:
    return "--".join([*([job.panel] if job.panel else []), job.data, job.run, str(job.seed)])
