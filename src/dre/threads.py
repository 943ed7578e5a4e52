"""Threads: how many a fit may use on a machine that others use too, and kernels that are shared among them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

PARALLEL = 2**20  # pairs of rows from which a second thread pays
LOOKS, PAUSE = 5, 2e-3  # at the number of running tasks, and the seconds between two


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute on so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside: on operations of microseconds several wait for each other.

    Kernels that ``in_threads`` shares still use as many threads as outside.
    """
    outside = thread_count()
    _outside.append(outside)
    try:
        with threads(1):
            yield
    finally:
        _outside.pop()


_outside: list[int] = []  # numbers of threads outside of ``one_thread``


def thread_count() -> int:
    """Number of threads for large operations, also inside ``one_thread``."""
    return max([torch.get_num_threads(), *_outside])


def idle_threads() -> int:
    """Number of threads that find a core of their own, at least one and at most as many as torch uses.

    Threads that share a core with another program are waited for at the end of every operation: on a busy machine one thread
    is many times as fast as two.
    """
    limit = torch.get_num_threads()
    if limit == 1:
        return 1
    others = _running_elsewhere()
    return max(1, min(limit, (os.cpu_count() or limit) - others))


def _running_elsewhere() -> int:
    """Number of tasks of other programs that run or wait for a core, the least of a few looks; 0 if the system does not say."""
    counts = []
    for _ in range(LOOKS):
        try:
            with open("/proc/loadavg") as file:
                counts.append(int(file.read().split()[3].split("/")[0]) - 1)  # this thread runs as well
        except (OSError, IndexError, ValueError):
            return 0
        time.sleep(PAUSE)
    return max(0, min(counts))


def in_threads(kernel: Any, rows: int, work: int, arguments: tuple[Any, ...]) -> None:
    """Call ``kernel(first, last, *arguments)`` on parts of the rows, in as many threads as torch uses and the work pays.

    ``work`` counts pairs of rows, or anything that takes as long. Kernels must release the interpreter's lock. numba's own
    threads would not survive a fork.
    """
    count = max(1, min(thread_count(), 1 + work // PARALLEL, rows))
    ends = [rows * t // count for t in range(count + 1)]
    others = [_pool(count).submit(kernel, ends[t], ends[t + 1], *arguments) for t in range(1, count)]
    kernel(ends[0], ends[1], *arguments)
    for other in others:
        other.result()


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count - 1, "kernels")
