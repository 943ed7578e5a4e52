"""Made-up records and embeddings for the tests of the report and the figures: nothing is fitted."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from dre.datasets import Dataset, DatasetSplit
from paper.jobs import Selection, jobs
from paper.load_spec import load_spec
from paper.spec import Data, Job, Spec
from paper.store import Store, fingerprint

FOLDER = Path(__file__).parents[2] / "benchmarks"
STAGES = {"paper": 5, "dre": 3}
IN_SAMPLE = ("bh-tsne", "fit-sne", "eigenmaps")
SCORES = (
    "neighborhood_hit",
    "trustworthiness",
    "continuity",
    "one_minus_stress",
    "shepard_goodness",
    "nearest_neighbor",
    "silhouette",
    "centroid_correlation",
    "neighborhood_hit_standard",
)


def spec() -> Spec:
    return load_spec(FOLDER)


def store(folder: Path) -> Store:
    return Store(folder / "cells", folder / "maps")


def rng_of(*parts: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("/".join(map(str, parts)).encode()))


def record(job: Job, spec: Spec, **changes: Any) -> dict[str, Any]:
    """As `measure` writes one; ``changes`` take the place of its fields."""
    rng, data, run = rng_of(job), spec.data[job.data], spec.runs[job.run]
    gpu = None if job.panel == "cpu" else "NVIDIA H200"
    in_sample = run.baseline in IN_SAMPLE
    count = STAGES.get(job.run, 1)
    stages = []
    for stage in range(count):
        known = _published(spec, job, stage)
        scores = {name: float(known.get(name, 0.6) + rng.normal(0, 0.02)) for name in SCORES}
        if data.set == "imdb":
            scores["neighborhood_hit_by_level"] = {"sentiment": scores["neighborhood_hit"], "stars": 0.25}  # type: ignore[assignment]
        prefixes = {str(prefix): {"nearest_neighbor": float(rng.uniform(0.8, 0.9))} for prefix in data.prefixes}
        if data.scores == "1-nn":
            scores = {"nearest_neighbor": scores["nearest_neighbor"]}
        found: dict[str, Any] = {"stage": f"stage {stage}", "seconds": 10.0 * (stage + 1), "scores": scores}
        stages.append({**found, "prefixes": prefixes} if prefixes else found)
    return {
        "plan": fingerprint(job, spec),
        "job": {"data": job.data, "run": job.run, "seed": job.seed, "panel": job.panel},
        "data": data.title,
        "rows": 10_000 if in_sample else 60_000,
        "test_rows": 10_000,
        "in_sample": in_sample,
        "fit_seconds": float(rng.uniform(1, 300)),
        "transform_seconds": None if in_sample else float(rng.uniform(0.05, 0.9)),
        "peak_memory_mb": float(rng.uniform(100, 4000)),
        "peak_gpu_mb": None,
        "workers": 1,
        "device": "cpu" if gpu is None else "cuda",
        "stages": stages,
        "command": f"python benchmarks/bench.py{' --panel ' + job.panel if job.panel else ''}",
        "date": f"2025-03-0{1 + job.seed}T12:00:00+00:00",
        "versions": {"dre": "0.3.0", "python": "3.12.1", "torch": "2.6.0"},
        "machine": {"cpus": 2 if gpu is None else 16, "gpu": gpu, "system": "Linux x86_64"},
        **changes,
    }


def write_all(spec: Spec, into: Store, selection: Selection | None = None) -> list[Job]:
    """A record of every job that the plans ask for."""
    wanted = jobs(spec, selection or Selection())
    for job in wanted:
        into.save(job, record(job, spec))
    return wanted


def full(spec: Spec, folder: Path) -> Store:
    """All records but a few: a method failed, one was never run, one has two of its seeds, and the large data are not there."""
    made = store(folder)
    for job in write_all(spec, made):
        if spec.data[job.data].set == "tasic2018":
            made.path(job).unlink()
    for seed in range(3):
        made.save(Job("mnist", "umap", seed), {"plan": {}, "failed": "MemoryError: 31 GiB"})
    made.path(Job("mnist", "dl-tsne", 0)).unlink()
    made.path(Job("fashion-mnist", "dre", 2)).unlink()
    return made


def set_scores(into: Store, job: Job, stage: int = -1, *, prefixes: dict[int, float] | None = None, **scores: Any) -> None:
    """Overwrite scores in the record of a job; ``prefixes`` are 1-NN accuracies of the first so many rows."""
    content = json.loads(into.path(job).read_text())
    content["stages"][stage]["scores"].update(scores)
    for prefix, value in (prefixes or {}).items():
        content["stages"][stage]["prefixes"][str(prefix)]["nearest_neighbor"] = value
    into.save(job, content)


def measured(made: Store, spec: Spec, data: str, method: str, score: str) -> list[float]:
    """Scores of all seeds there are records of, straight from the files."""
    known = spec.methods[method]
    stages = [
        json.loads(path.read_text())["stages"][-1 if known.stage is None else known.stage]
        for path in sorted(made.records.glob(f"{data}--{known.run}--?.json"))
    ]
    return [stage["scores"][score] for stage in stages]


def dataset(data: Data, rows: int = 300, test_rows: int = 200) -> Dataset:
    """Ten classes, and two levels of labels."""
    parts = []
    for count in (rows, test_rows):
        digits = np.arange(count) % 10
        levels = {"class": digits, "sentiment": np.where(digits < 5, "negative", "positive"), "stars": digits}
        parts.append(DatasetSplit(np.zeros((count, 4), np.float32), digits, levels))
    return Dataset(data.set, data.title, parts[0], parts[1], "made up")


def blobs(labels: Any, seed: int = 0, spread: float = 1.0) -> Any:
    """A map with a blob per class, on a circle; 4 and 9 touch."""
    rng = np.random.default_rng(seed)
    codes = np.asarray(labels).astype(int)
    angles = 2 * np.pi * np.array([0, 1, 2, 3, 8.3, 4, 5, 6, 7, 9])[codes] / 10
    middles = 8 * np.stack([np.cos(angles), np.sin(angles)], 1)
    return (middles + rng.normal(0, spread, (len(codes), 2))).astype(np.float32)


def write_maps(spec: Spec, into: Store, wanted: list[Job], rows: int = 300, test_rows: int = 200) -> None:
    """The maps of the first seed, as the runner keeps them."""
    for job in wanted:
        if job.seed or job.panel:
            continue
        made = dataset(spec.data[job.data], rows, test_rows)
        maps = {}
        for stage in range(STAGES.get(job.run, 1)):
            maps[f"test-{stage}"] = blobs(made.test.labels, stage)
            if spec.runs[job.run].baseline not in IN_SAMPLE:
                maps[f"train-{stage}"] = blobs(made.train.labels, stage + 10)
        into.save_maps(job, maps)


def _published(spec: Spec, job: Job, stage: int) -> dict[str, float]:
    """What the paper has for the method that reads this stage."""
    for method in spec.methods.values():
        last = STAGES.get(job.run, 1) - 1
        if method.run == job.run and stage == (last if method.stage is None else method.stage):
            for table in spec.tables:
                values = table.published.get(job.data, {}).get(method.name)
                if values and not table.smaller_is_better:
                    return dict(zip(table.scores, values, strict=False))
    return {}
