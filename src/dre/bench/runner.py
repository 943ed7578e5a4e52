"""Carries out jobs, one after the other or several at a time, and keeps the record of each as soon as it is there."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

from dre.bench.cells import Cells, planned
from dre.bench.jobs import command, drawn_maps
from dre.bench.loading import first, loaded
from dre.bench.plan import Job
from dre.bench.plans import Plans
from dre.bench.record import provenance


@dataclass(frozen=True)
class Setting:
    """Where and how jobs are carried out."""

    plans: Plans
    cells: Cells
    folder: str | None = None  # where data are looked for first
    device: str = "auto"
    workers: int = 1
    stand_in: bool = False


@dataclass(frozen=True)
class Outcome:
    job: Job
    seconds: float = 0.0
    problem: str = ""  # the last line of what went wrong


def pending(jobs: list[Job], setting: Setting) -> list[Job]:
    return [job for job in jobs if not setting.cells.is_done(job, setting.plans)]


def carry_out(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    """Yields the outcome of each. A job that fails is recorded as failed, is tried again next time, and stops no other.

    Jobs of a panel, whose times are compared, run alone.
    """
    alone = [job for job in jobs if job.panel or setting.workers == 1]
    together = [job for job in jobs if job not in alone]
    if together:
        yield from _several(together, setting)
    for job in alone:
        yield one(job, setting)


def _several(jobs: list[Job], setting: Setting) -> Iterator[Outcome]:
    spawn = multiprocessing.get_context("spawn")  # a fork would share the GPU's context
    with ProcessPoolExecutor(
        setting.workers, mp_context=spawn, initializer=_share_the_cores, initargs=(setting.workers,)
    ) as pool:
        futures: list[Future[Outcome]] = [pool.submit(one, job, setting) for job in jobs]
        for future in as_completed(futures):
            yield future.result()


def _share_the_cores(workers: int) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))


def one(job: Job, setting: Setting) -> Outcome:
    from dre.bench.measure import measure

    try:
        dataset = loaded(setting.plans.data[job.data], setting.folder, stand_in=setting.stand_in)
        dataset = replace(dataset, test=first(dataset.test, setting.plans.runs[job.run].test_rows))
        workers = 1 if job.panel else setting.workers
        result = measure(job, setting.plans, dataset, device=setting.device, workers=workers)
    except Exception as problem:  # whatever it is: the other cells do not depend on it
        last = "".join(traceback.format_exception_only(problem)).strip()
        setting.cells.keep(
            job, {"plan": planned(job, setting.plans), "failed": last, **provenance(), "command": command(job, setting.plans)}
        )
        return Outcome(job, problem=last)
    drawn = drawn_maps(setting.plans, job, len(result.record["stages"]))
    if drawn:
        setting.cells.keep_maps(job, {name: Y for name, Y in result.maps.items() if name in drawn})
    setting.cells.keep(job, result.record)
    return Outcome(job, result.record["fit_seconds"])


def watched(outcomes: Iterator[Outcome], total: int, say: Callable[[str], None]) -> list[Outcome]:
    """Says each outcome as it comes; gives those that failed."""
    failed = []
    for count, outcome in enumerate(outcomes, 1):
        what = f"failed: {outcome.problem}" if outcome.problem else f"fitted in {outcome.seconds:.1f} s"
        say(f"[{count}/{total}] {outcome.job}: {what}")
        failed += [outcome] if outcome.problem else []
    return failed
