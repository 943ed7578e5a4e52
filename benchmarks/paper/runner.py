"""Carries out jobs, one after the other or several at a time, and keeps the record of each as soon as it is there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from dre.compare.cells import Cells
from dre.compare.jobs import drawn_maps
from dre.compare.plan import Job
from dre.compare.plans import Plans
from dre.datasets import DatasetNotFoundError
from paper.loading import first, loaded

DIED = "its process died, most likely for want of memory: run it with fewer --workers, or on a larger machine"
# What the libraries read when they are loaded; torch's own threads follow OpenMP's.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PANEL_DEVICES = {"gpu": "cuda", "cpu": "cpu"}


@dataclass(frozen=True)
class Setting:
    """Where and how jobs are carried out."""

    plans: Plans
    cells: Cells
    folder: str | None = None  # where data are looked for first
    device: str = "auto"
    workers: int = 1
    stand_in: bool = False

    def device_for(self, job: Job) -> str:
        """A panel is of one kind of device, whatever there is besides."""
        return PANEL_DEVICES.get(job.panel, self.device)


@dataclass(frozen=True)
class Outcome:
    job: Job
    seconds: float = 0.0
    problem: str = ""  # the last line of what went wrong
    skipped: str = ""  # why it was not tried


def pending(jobs: list[Job], setting: Setting) -> list[Job]:
    return [job for job in jobs if not setting.cells.is_done(job, setting.plans)]


def carry_out(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    """Yields the outcome of each. A job that fails is recorded as failed, is tried again next time, and stops no other.

    Those whose times are compared come last, one at a time, each in a process of its own: none has compiled for another.
    """
    timed = [job for job in jobs if job.panel]
    others = [job for job in jobs if not job.panel]
    yield from _several(others, setting) if setting.workers > 1 else (one(job, setting) for job in others)
    yield from (_alone(job, replace(setting, workers=1)) for job in timed)


def _several(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    left = dict.fromkeys(jobs)
    with _pool(setting.workers) as pool:
        futures = {pool.submit(one, job, setting): job for job in jobs}
        try:
            for future in as_completed(futures):
                outcome = future.result()
                del left[outcome.job]
                yield outcome
            return
        except BrokenProcessPool:
            pass  # some worker died, and all that waited with it; which job it was is seen when each has its own
    yield from (_alone(job, setting) for job in left)


def _alone(job: Job, setting: Setting) -> Outcome:
    """In a process of its own."""
    with _pool(1) as pool:
        try:
            return pool.submit(one, job, setting).result()
        except BrokenProcessPool:
            setting.cells.keep_failure(job, setting.plans, DIED)
            return Outcome(job, problem=DIED)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that share the cores; left at once when something goes wrong or someone presses Ctrl-C."""
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    own = {name: threads for name in THREADS if name not in os.environ}
    os.environ.update(own)
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))  # a fork would share the GPU's context
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():  # what is half done is not waited for
            process.terminate()
        raise
    finally:
        for name in own:
            del os.environ[name]
    pool.shutdown()


def one(job: Job, setting: Setting) -> Outcome:
    """Carry out one job here, and keep what comes of it."""
    try:
        return Outcome(job, _measured(job, setting))
    except DatasetNotFoundError as problem:
        if not _may_be_missing(job, setting.plans):
            return _failed(job, setting, problem)
        return Outcome(job, skipped=str(problem).splitlines()[0])
    except Exception as problem:  # whatever it is: the other cells do not depend on it
        return _failed(job, setting, problem)


def _measured(job: Job, setting: Setting) -> float:
    from dre.compare.measure import measure

    dataset = loaded(setting.plans.data[job.data], setting.folder, stand_in=setting.stand_in)
    dataset = replace(dataset, test=first(dataset.test, setting.plans.runs[job.run].test_rows))
    workers = 1 if job.panel else setting.workers
    threads = torch.get_num_threads()
    try:
        result = measure(job, setting.plans, dataset, device=setting.device_for(job), workers=workers)
    finally:
        torch.set_num_threads(threads)  # UMAP's compiler sets OpenMP's, which are torch's too
    uniform_like = drawn_maps(setting.plans, job, len(result.record["stages"]))
    if uniform_like:
        setting.cells.keep_maps(job, {name: Y for name, Y in result.maps.items() if name in uniform_like})
    setting.cells.keep(job, result.record)
    seconds: Any = result.record["fit_seconds"]
    return float(seconds)


def _failed(job: Job, setting: Setting, problem: Exception) -> Outcome:
    last = "".join(traceback.format_exception_only(problem)).strip()
    setting.cells.keep_failure(job, setting.plans, last)
    return Outcome(job, problem=last)


def _may_be_missing(job: Job, plans: Plans) -> bool:
    """Whether a table says what it means that the data are not there."""
    return any(each.without_data and job.data in each.data for table in plans.tables for each in table.not_run)


def watched(outcomes: Iterator[Outcome], total: int, say: Callable[[str], None]) -> list[Outcome]:
    """Says each outcome as it comes; gives those that failed. Ctrl-C stops it, at the next cell at the latest."""
    failed: list[Outcome] = []
    count = 0
    with _noticed() as stopped:
        try:
            for count, outcome in enumerate(outcomes, 1):
                what = f"fitted in {outcome.seconds:.1f} s"
                if outcome.problem:
                    what = f"failed: {outcome.problem}"
                    failed.append(outcome)
                say(f"[{count}/{total}] {outcome.job}: {f'left out: {outcome.skipped}' if outcome.skipped else what}")
                if stopped():
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            say(f"stopped after {count} of {total}; the same command goes on from there")
            raise
    return failed


@contextmanager
def _noticed() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed: a compiler that is called back by C can lose the exception that Python makes of it."""
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()  # Python lets no other thread set a handler
    before = signal.signal(signal.SIGINT, handle) if main else None
    try:
        yield lambda: bool(seen)
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
