"""One job from data to record: fit, embed, score, with seconds and peak memory."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dre.baselines import make
from dre.compare.cells import planned
from dre.compare.jobs import command, stages_wanted
from dre.compare.memory import PeakMemory
from dre.compare.plan import Data, Job
from dre.compare.plans import Plans
from dre.compare.record import provenance
from dre.datasets import Dataset, DatasetSplit
from dre.metrics import evaluate, nearest_neighbor, neighborhood_hit
from dre.model.estimator import DRE
from dre.training.loop import Event, StageEnded

Array = np.ndarray[Any, Any]
CHUNK = 50_000  # rows that are embedded at a time, where there are many
# Rows that are fitted first where times are compared, so that what is compiled once is not timed; with fewer than 4,096 UMAP
# takes another way.
WARM_UP = 5000
INTERRUPTED = "fit was interrupted"


@dataclass(frozen=True)
class Result:
    record: dict[str, Any]
    maps: dict[str, Array]  # "train-STAGE" and "test-STAGE"


def measure(job: Job, plans: Plans, dataset: Dataset, *, device: str = "auto", workers: int = 1) -> Result:
    """Carry out a job.

    A method that can't embed new rows is fitted to the test rows themselves, and says so (``in_sample``); where times are
    compared it is fitted to the training rows like all others.
    """
    plan, run = plans.data[job.data], plans.runs[job.run]

    # Times are taken without a seed: with one, UMAP works on a single thread.
    seed = None if job.panel else job.seed
    model = make(run.baseline, random_state=seed, device=device, **_read(run.options))
    in_sample = not getattr(model, "embeds_new_rows", True)
    fitted = dataset.test if in_sample and not job.panel else dataset.train
    rows = as_array(fitted.rows, 0, fitted.rows.shape[0])
    if job.panel:
        few_steps = {name: value for name, value in run.quick.items() if name != "encoder"}
        _warm_up(make(run.baseline, random_state=seed, device=device, **_read({**run.options, **few_steps})), rows[:WARM_UP])
    clock = StageClock()
    with PeakMemory() as memory:
        seconds = clock.time(lambda: _fit(model, rows, clock))
    if in_sample:
        maps = {"train-0" if job.panel else "test-0": model.embedding_}
        transform_seconds = None
    else:
        stages = stages_wanted(job, plans, len(getattr(model, "stages_", [None])))
        maps, transform_seconds = _embedded(model, rows, dataset.test, stages)
    record = {
        "plan": planned(job, plans),
        "job": {"data": job.data, "run": job.run, "seed": job.seed, "panel": job.panel},
        "data": dataset.title,
        "rows": int(rows.shape[0]),
        "test_rows": int(dataset.test.rows.shape[0]),
        "in_sample": in_sample,
        "fit_seconds": round(seconds, 3),
        "transform_seconds": transform_seconds,
        "peak_memory_mb": memory.host_mb,
        "peak_gpu_mb": memory.gpu_mb,
        "workers": workers,
        "device": _device_of(model, device),
        "stages": _stages(model, maps, plan, dataset, clock),
        **provenance(),
        "command": command(job, plans),
    }
    return Result(record, maps)


class StageClock:
    """An observer that notes when each stage of a fit ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self._began = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageEnded):
            _wait()
            self.ends.append(time.perf_counter() - self._began)

    def time(self, work: Callable[[], Any]) -> float:
        _wait()
        self._began = time.perf_counter()
        work()
        _wait()
        return time.perf_counter() - self._began


def as_array(rows: Any, start: int, stop: int) -> Array:
    """Rows of an array, or of a generator as bytes; a copy is made only of what is generated."""
    if hasattr(rows, "images"):
        generated: Array = rows.images(start, stop).cpu().numpy()
        return generated
    return np.asarray(rows[start:stop])


def _embedded(model: Any, rows: Array, test: DatasetSplit, stages: list[int]) -> tuple[dict[str, Array], float]:
    """The maps of both parts after these stages, and the seconds that the test rows took by the last."""
    n, last = test.rows.shape[0], stages[-1]
    pieces: dict[int, list[Array]] = {stage: [] for stage in stages}
    spent = 0.0
    for start in range(0, n, CHUNK):
        stop = min(n, start + CHUNK)
        # ours reads generated rows where they are generated; the others get them as an array
        part = test.rows[start:stop] if isinstance(model, DRE) else as_array(test.rows, start, stop)
        for stage in stages:
            began = time.perf_counter()
            pieces[stage].append(_placed(model, part, None if stage == last else stage))
            spent += time.perf_counter() - began if stage == last else 0
    maps = {f"test-{stage}": np.concatenate(of_stage) for stage, of_stage in pieces.items()}
    for stage in stages:
        maps[f"train-{stage}"] = model.embedding_ if stage == last else _placed(model, rows, stage)
    return maps, round(spent, 4)


def _placed(model: Any, rows: Any, stage: int | None) -> Array:
    placed: Array = model.transform(rows) if stage is None else model.transform(rows, stage=stage)
    return placed


def _stages(model: Any, maps: dict[str, Array], plan: Data, dataset: Dataset, clock: StageClock) -> list[dict[str, Any]]:
    described = [str(stage) for stage in getattr(model, "schedule_", [""])]
    found = []
    for stage, text in enumerate(described):
        test, train = maps.get(f"test-{stage}"), maps.get(f"train-{stage}")
        scores: dict[str, Any] = {}
        if test is not None:
            known = (train, dataset.train.labels) if train is not None and dataset.test.levels else None
            scores = scored(plan, dataset.test, test, known)
        found.append({"stage": text, "seconds": round(clock.ends[stage], 3) if clock.ends else None, **scores})
    return found


def scored(plan: Data, test: DatasetSplit, Y: Array, known: tuple[Array, Array] | None) -> dict[str, Any]:
    """The scores of a map of the test rows, and of the first so many of them where the plan asks."""
    found: dict[str, Any] = {}
    for prefix in plan.prefixes:
        found.setdefault("prefixes", {})[str(prefix)] = _one_nn(Y[:prefix], test.labels[:prefix], known)
    if plan.scores == "1-nn":
        return {"scores": _one_nn(Y, test.labels, known), **found}
    X = as_array(test.rows, 0, test.rows.shape[0]).reshape(len(Y), -1).astype(np.float32)
    scores = dict(evaluate(X, Y, test.levels or None, protocol=plan.protocol, reference=known))
    if test.levels:
        scores["neighborhood_hit_standard"] = neighborhood_hit(Y, test.labels)
    scores["one_minus_stress"] = 1 - scores.pop("normalized_stress")
    return {"scores": scores, **found}


def _one_nn(Y: Array, labels: Array, known: tuple[Array, Array] | None) -> dict[str, float]:
    # on the CPU, where few dimensions are searched by a tree: a million rows take seconds
    return {"nearest_neighbor": nearest_neighbor(Y, labels, reference=known, device="cpu")}


def _warm_up(model: Any, rows: Array) -> None:
    model.fit(rows)
    if getattr(model, "embeds_new_rows", True):
        model.transform(rows[:10])


def _fit(model: Any, rows: Array, clock: StageClock) -> None:
    """Ours tells when a stage ends, and takes those who want to know. A model that Ctrl-C left half-trained is no result."""
    observed = {"observers": [clock]} if "observers" in inspect.signature(model.fit).parameters else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=INTERRUPTED)
        try:
            model.fit(rows, **observed)
        except UserWarning as interrupted:
            if str(interrupted).startswith(INTERRUPTED):
                raise KeyboardInterrupt from interrupted
            raise


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """TOML has lists where the estimators want tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def _device_of(model: Any, device: str) -> str:
    """Where the work was done: what has no parameter for it does it on the CPU."""
    return (
        (device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu") if hasattr(model, "device") else "cpu"
    )


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
