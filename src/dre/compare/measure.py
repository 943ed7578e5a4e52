"""Measure one method: fit, embed and score it, with seconds and peak memory."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dre.baselines import make
from dre.compare.memory import PeakMemory
from dre.compare.record import provenance
from dre.data.metric import RowMetric, row_metric
from dre.data.subsample import to_array
from dre.datasets import Dataset, DatasetSplit
from dre.metrics import evaluate, nearest_neighbor, neighborhood_hit
from dre.model.estimator import DRE
from dre.runtime import resolve_device
from dre.training.events import Event, StageEnded

Array = np.ndarray[Any, Any]
CHUNK = 50_000  # rows that are embedded at a time
WARM_UP = 5000  # rows of the untimed first fit; below 4,096 UMAP compiles another code path
INTERRUPTED = "fit was interrupted"


EUCLIDEAN = row_metric("euclidean")


@dataclass(frozen=True)
class Scoring:
    """How an embedding is scored."""

    protocol: str = "standard"  # or "paper", as in dre.metrics.evaluate
    only_nearest_neighbor: bool = False  # for data that are too large for the other scores
    prefixes: tuple[int, ...] = ()  # also score the first so many test rows
    metric: RowMetric = EUCLIDEAN  # between rows


@dataclass(frozen=True)
class Measurement:
    """A record that JSON can hold, and the embeddings as "train-STAGE" and "test-STAGE"."""

    record: dict[str, Any]
    maps: dict[str, Array]


@contextmanager
def _keep_torch_threads() -> Iterator[None]:
    """Restore torch's number of threads: code that umap-learn compiles changes it for the whole process."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_keep_torch_threads()
def measure(
    method: str,
    dataset: Dataset,
    *,
    options: Mapping[str, Any] | None = None,
    random_state: int | None = 0,
    device: str = "auto",
    scoring: Scoring | None = None,
    stages: Callable[[int], list[int]] | None = None,
    warm_up: Mapping[str, Any] | None = None,
) -> Measurement:
    """Fit a method to the training rows, embed the test rows, and score the embedding after each stage.

    A method that can't embed new rows is fitted to the test rows instead, and its record says ``in_sample``.

    Parameters
    ----------
    method : str
        A name of ``dre.baselines``.
    dataset : Dataset
        Training and test rows with labels.
    options : mapping, optional
        Parameters of the estimator.
    random_state : int or None, default=0
        Seed. UMAP uses a single thread if it has one.
    device : str, default="auto"
        Where networks are trained.
    scoring : Scoring, optional
        Protocol and extent of the scores.
    stages : callable, optional
        Maps the number of stages of the model to the stages that are embedded and scored. Default: all.
    warm_up : mapping, optional
        Compare times: first fit a model with these options added to ``options`` to a few rows, so that compilation is not
        timed, and fit in-sample methods to the training rows too.

    Returns
    -------
    Measurement
        ``record`` has the scores of each stage, seconds, peak memory and provenance.
    """
    scoring = scoring or Scoring()
    parameters = _with_tuples(options or {})
    model = make(method, random_state=random_state, device=device, **parameters)
    timed = warm_up is not None
    in_sample = not getattr(model, "embeds_new_rows", True)
    part = dataset.test if in_sample and not timed else dataset.train
    rows = read_slice(part.rows, 0, part.rows.shape[0])
    if warm_up is not None:
        small = make(method, random_state=random_state, device=device, **{**parameters, **_with_tuples(warm_up)})
        _warm_up(small, rows[:WARM_UP])
    clock = StageClock()
    with PeakMemory() as memory:
        seconds = clock.time(lambda: _fit(model, rows, clock))
    if in_sample:
        maps: dict[str, Array] = {"train-0" if timed else "test-0": model.embedding_}
        transform_seconds = None
    else:
        count = len(getattr(model, "stages_", [None]))
        maps, transform_seconds = _embed(model, rows, dataset.test, list(range(count)) if stages is None else stages(count))
    record = {
        "data": dataset.title,
        "rows": int(rows.shape[0]),
        "test_rows": int(dataset.test.rows.shape[0]),
        "in_sample": in_sample,
        "fit_seconds": round(seconds, 3),
        "transform_seconds": transform_seconds,
        "peak_memory_mb": memory.host_mb,
        "peak_gpu_mb": memory.gpu_mb,
        "device": _device_of(model, device),
        "stages": _stage_records(model, maps, dataset, scoring, clock),
        **provenance(),
    }
    return Measurement(record, maps)


class StageClock:
    """Observer that notes when each stage of a fit ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self._start = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageEnded):
            _synchronize()
            self.ends.append(time.perf_counter() - self._start)

    def time(self, work: Callable[[], Any]) -> float:
        """Run ``work`` and return its seconds."""
        _synchronize()
        self._start = time.perf_counter()
        work()
        _synchronize()
        return time.perf_counter() - self._start


def read_slice(rows: Any, start: int, stop: int) -> Array:
    """Return a slice of rows as an array; generated images stay uint8, a quarter of the memory of float32."""
    if hasattr(rows, "images"):
        generated: Array = rows.images(start, stop).cpu().numpy()
        return generated
    return to_array(rows[start:stop])


def _embed(model: Any, rows: Array, test: DatasetSplit, stages: list[int]) -> tuple[dict[str, Array], float]:
    """Embed both parts after each of the stages; also return the seconds of the test rows after the last."""
    n, last = test.rows.shape[0], stages[-1]
    pieces: dict[int, list[Array]] = {stage: [] for stage in stages}
    seconds = 0.0
    for start in range(0, n, CHUNK):
        stop = min(n, start + CHUNK)
        # DRE reads generated rows where they are generated; other methods need an array.
        part = test.rows[start:stop] if isinstance(model, DRE) else read_slice(test.rows, start, stop)
        for stage in stages:
            began = time.perf_counter()
            pieces[stage].append(_transform(model, part, None if stage == last else stage))
            seconds += time.perf_counter() - began if stage == last else 0
    maps = {f"test-{stage}": np.concatenate(of_stage) for stage, of_stage in pieces.items()}
    for stage in stages:
        maps[f"train-{stage}"] = model.embedding_ if stage == last else _transform(model, rows, stage)
    return maps, round(seconds, 4)


def _transform(model: Any, rows: Any, stage: int | None) -> Array:
    embedding: Array = model.transform(rows) if stage is None else model.transform(rows, stage=stage)
    return embedding


def _stage_records(
    model: Any, maps: dict[str, Array], dataset: Dataset, scoring: Scoring, clock: StageClock
) -> list[dict[str, Any]]:
    records = []
    run = list(getattr(model, "schedule_", [""]))[: len(getattr(model, "stages_", [None]))]  # not those skipped or undone
    for stage, text in enumerate(map(str, run)):
        test, train = maps.get(f"test-{stage}"), maps.get(f"train-{stage}")
        scores: dict[str, Any] = {}
        if test is not None:
            known = (train, dataset.train.labels) if train is not None and dataset.test.levels else None
            scores = score(dataset.test, test, known, scoring)
        records.append({"stage": text, "seconds": round(clock.ends[stage], 3) if clock.ends else None, **scores})
    return records


def score(test: DatasetSplit, Y: Array, known: tuple[Array, Array] | None, scoring: Scoring) -> dict[str, Any]:
    """Score an embedding of the test rows; ``known`` is the embedding of the training rows with their labels."""
    found: dict[str, Any] = {}
    for prefix in scoring.prefixes:
        found.setdefault("prefixes", {})[str(prefix)] = _one_nn(Y[:prefix], test.labels[:prefix], known)
    if scoring.only_nearest_neighbor:
        return {"scores": _one_nn(Y, test.labels, known), **found}
    X = read_slice(test.rows, 0, test.rows.shape[0]).reshape(len(Y), -1).astype(np.float32)
    scores = dict(evaluate(X, Y, test.levels or None, metric=scoring.metric, protocol=scoring.protocol, reference=known))
    if test.levels:
        scores["neighborhood_hit_standard"] = neighborhood_hit(Y, test.labels)
    scores["one_minus_stress"] = 1 - scores.pop("normalized_stress")
    return {"scores": scores, **found}


def _one_nn(Y: Array, labels: Array, known: tuple[Array, Array] | None) -> dict[str, float]:
    # On the CPU, where a tree searches two dimensions: a million rows take seconds.
    return {"nearest_neighbor": nearest_neighbor(Y, labels, reference=known, device="cpu")}


def _warm_up(model: Any, rows: Array) -> None:
    model.fit(rows)
    if getattr(model, "embeds_new_rows", True):
        model.transform(rows[:10])


def _fit(model: Any, rows: Array, clock: StageClock) -> None:
    """Fit with the clock as observer where the model takes observers; Ctrl-C raises, since half a fit is no result."""
    observed = {"observers": [clock]} if "observers" in inspect.signature(model.fit).parameters else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=INTERRUPTED)
        try:
            model.fit(rows, **observed)
        except UserWarning as interrupted:
            if str(interrupted).startswith(INTERRUPTED):
                raise KeyboardInterrupt from interrupted
            raise


def _with_tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """TOML and JSON have lists where estimators take tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def _device_of(model: Any, device: str) -> str:
    """The device that was used; estimators without a parameter for it compute on the CPU."""
    return str(resolve_device(device)) if hasattr(model, "device") else "cpu"


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
