"""Run jobs one by one or in several processes, and store the record of each when it ends."""

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
from dataclasses import asdict, dataclass, replace
from types import FrameType

from dre.compare.measure import Measurement, Scoring, measure
from dre.datasets import Dataset, DatasetNotFoundError
from paper.jobs import command, drawn_maps, scored_stages
from paper.loading import first, load_data
from paper.spec import Job, Spec
from paper.store import Store, fingerprint

DIED = "its process died, probably out of memory: use fewer --workers or a larger machine"
# Read by the libraries on import; torch's threads follow OpenMP's.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PANEL_DEVICES = {"gpu": "cuda", "cpu": "cpu"}


@dataclass(frozen=True)
class Setting:
    """Where and how jobs run."""

    spec: Spec
    store: Store
    folder: str | None = None  # where data are looked for first
    device: str = "auto"
    workers: int = 1

    def device_for(self, job: Job) -> str:
        """Return the device of a job: the panel's, if it has one."""
        return PANEL_DEVICES.get(job.panel, self.device)


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    job: Job
    seconds: float = 0.0
    problem: str = ""  # last line of the error
    skipped: str = ""  # why it was skipped

    def __str__(self) -> str:
        result = f"fitted in {self.seconds:.1f} s"
        if self.problem:
            result = f"failed: {self.problem}"
        elif self.skipped:
            result = f"skipped: {self.skipped}"
        return f"{self.job}: {result}"


def pending(jobs: list[Job], setting: Setting) -> list[Job]:
    """Return the jobs without a current result."""
    return [job for job in jobs if not setting.store.is_done(job, setting.spec)]


def run_jobs(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    """Run jobs and yield their outcomes. A failure is recorded, stops no other job, and is tried again next time.

    Jobs whose times are compared run last, one at a time and each in its own process, so that none compiles for another.
    """
    timed = [job for job in jobs if job.panel]
    others = [job for job in jobs if not job.panel]
    yield from _in_parallel(others, setting) if setting.workers > 1 else (run_one(job, setting) for job in others)
    yield from (_in_own_process(job, replace(setting, workers=1)) for job in timed)


def _in_parallel(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    left = dict.fromkeys(jobs)
    with _pool(setting.workers) as pool:
        futures = {pool.submit(run_one, job, setting): job for job in jobs}
        try:
            for future in as_completed(futures):
                outcome = future.result()
                del left[outcome.job]
                yield outcome
            return
        except BrokenProcessPool:
            pass  # a worker died and took all waiting jobs with it; separate processes below show which job it was
    yield from (_in_own_process(job, setting) for job in left)


def _in_own_process(job: Job, setting: Setting) -> Outcome:
    with _pool(1) as pool:
        try:
            return pool.submit(run_one, job, setting).result()
        except BrokenProcessPool:
            setting.store.save_failure(job, setting.spec, DIED)
            return Outcome(job, problem=DIED)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that share the cores; an error or Ctrl-C ends them at once."""
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    own = {name: threads for name in THREADS if name not in os.environ}
    os.environ.update(own)
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))  # fork would share the GPU's context
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():  # do not wait for unfinished work
            process.terminate()
        raise
    finally:
        for name in own:
            del os.environ[name]
    pool.shutdown()


def run_one(job: Job, setting: Setting) -> Outcome:
    """Run a job in this process and store its result."""
    try:
        return _run(job, setting)
    except DatasetNotFoundError as problem:
        if not _may_be_missing(job, setting.spec):
            return _failed(job, setting, problem)
        return Outcome(job, skipped=str(problem).splitlines()[0])
    except Exception as problem:  # of any kind: the other jobs do not depend on it
        return _failed(job, setting, problem)


def _run(job: Job, setting: Setting) -> Outcome:
    spec, data = setting.spec, setting.spec.data[job.data]
    dataset = load_data(data, setting.folder)
    dataset = replace(dataset, test=first(dataset.test, spec.runs[job.run].test_rows))
    workers = 1 if job.panel else setting.workers
    result = measure_job(job, spec, dataset, device=setting.device_for(job), workers=workers)
    drawn = drawn_maps(spec, job, len(result.record["stages"]))
    if drawn:
        setting.store.save_maps(job, {name: Y for name, Y in result.maps.items() if name in drawn})
    setting.store.save(job, result.record)
    return Outcome(job, float(result.record["fit_seconds"]))


def measure_job(job: Job, spec: Spec, dataset: Dataset, *, device: str = "auto", workers: int = 1) -> Measurement:
    """Measure a job and add its fingerprint and command to the record.

    Jobs whose times are compared have no seed, since UMAP uses a single thread if it has one.
    """
    data, run = spec.data[job.data], spec.runs[job.run]
    result = measure(
        run.baseline,
        dataset,
        options=run.options,
        random_state=None if job.panel else job.seed,
        device=device,
        scoring=Scoring(data.protocol, data.scores == "1-nn", data.prefixes),
        stages=lambda count: scored_stages(job, spec, count),
        warm_up={name: value for name, value in run.quick.items() if name != "encoder"} if job.panel else None,
    )
    about = {"plan": fingerprint(job, spec), "job": asdict(job)}
    return replace(result, record={**about, **result.record, "workers": workers, "command": command(job, spec)})


def _failed(job: Job, setting: Setting, problem: Exception) -> Outcome:
    last = "".join(traceback.format_exception_only(problem)).strip()
    setting.store.save_failure(job, setting.spec, last)
    return Outcome(job, problem=last)


def _may_be_missing(job: Job, spec: Spec) -> bool:
    """Return whether a table explains missing data of this job."""
    return any(each.without_data and job.data in each.data for table in spec.tables for each in table.not_run)


def report_progress(outcomes: Iterator[Outcome], total: int, log: Callable[[str], None]) -> list[Outcome]:
    """Print each outcome and return the failed ones. Ctrl-C stops it, at the next job at the latest."""
    failed: list[Outcome] = []
    count = 0
    with _interrupt_flag() as interrupted:
        try:
            for count, outcome in enumerate(outcomes, 1):
                if outcome.problem:
                    failed.append(outcome)
                log(f"[{count}/{total}] {outcome}")
                if interrupted():
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            log(f"stopped after {count} of {total}; the same command resumes")
            raise
    return failed


@contextmanager
def _interrupt_flag() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; compiled code can swallow the KeyboardInterrupt."""
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()  # only the main thread may set a handler
    before = signal.signal(signal.SIGINT, handle) if main else None
    try:
        yield lambda: bool(seen)
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
