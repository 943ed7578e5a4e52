"""Results on disk: one JSON record per job, and the embeddings that figures show. They make a run resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.atomic import atomic_write
from dre.compare.record import provenance, write_json
from paper.jobs import command
from paper.spec import Job, Spec

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Store:
    """``records``: folder of small JSON files, kept with the project. ``maps``: folder of embeddings, local to a machine."""

    records: Path
    maps: Path

    def path(self, job: Job) -> Path:
        """Return the path of a job's record."""
        return self.records / f"{_file_name(job)}.json"

    def find(self, job: Job) -> dict[str, Any] | None:
        """Return the record of a job, failed or not; None before it was run."""
        try:
            content: dict[str, Any] = json.loads(self.path(job).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return content

    def is_done(self, job: Job, spec: Spec) -> bool:
        """Return whether there is a result for this job as the spec now defines it."""
        record = self.find(job)
        return record is not None and "failed" not in record and record["plan"] == fingerprint(job, spec)

    def save(self, job: Job, record: dict[str, Any]) -> None:
        """Write a job's record."""
        write_json(self.path(job), record)

    def save_failure(self, job: Job, spec: Spec, problem: str) -> None:
        """Write a record that says why a job failed."""
        about = {"plan": fingerprint(job, spec), "job": asdict(job), "failed": problem}
        self.save(job, {**about, **provenance(), "command": command(job, spec)})

    def save_maps(self, job: Job, maps: dict[str, Array]) -> None:
        """Write embeddings of a job."""
        path = self._maps_path(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            np.savez(part, **maps)  # type: ignore[arg-type]

    def map(self, job: Job, part: str, stage: int | None) -> Array | None:
        """Return the embedding of the training or test rows after a stage (None: the last), or None if it is not here."""
        path, record = self._maps_path(job), self.find(job)
        if record is None or "failed" in record or not path.is_file():
            return None
        name = f"{part}-{len(record['stages']) - 1 if stage is None else stage}"
        with np.load(path) as file:
            return file[name] if name in file.files else None

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield every record."""
        for path in sorted(self.records.glob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))

    def _maps_path(self, job: Job) -> Path:
        return self.maps / f"{_file_name(job)}.npz"


def fingerprint(job: Job, spec: Spec) -> dict[str, Any]:
    """Return the settings a record depends on. If they differ from the spec's, the job runs again."""
    data, run = asdict(spec.data[job.data]), asdict(spec.runs[job.run])
    for irrelevant in ("title", "name", "spread", "quick", "stand_in_for"):
        data.pop(irrelevant, None)
        run.pop(irrelevant, None)
    return json.loads(json.dumps({"data": data, "run": run}))  # type: ignore[no-any-return]


def _file_name(job: Job) -> str:
    return "--".join([*([job.panel] if job.panel else []), job.data, job.run, str(job.seed)])
