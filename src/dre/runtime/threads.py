"""Threads: work that several share, as many as find a core of their own, with the same bits whatever their number."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

PARALLEL = 2**20  # pairs of rows from which a second thread pays
LOOK_EVERY = 0.1  # seconds between two looks at what other programs do


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside: on operations of microseconds several wait for each other.

    Kernels that ``in_threads`` shares still use as many threads as outside.
    """
    before = torch.get_num_threads()
    _outside.append(thread_count())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _outside.pop()


_outside: list[int] = []  # numbers of threads outside of ``one_thread``


def thread_count() -> int:
    """Number of threads for large operations, also inside ``one_thread``."""
    return max([torch.get_num_threads(), *_outside])


def idle_threads() -> int:
    """Number of threads that find a core of their own, at least one and at most ``thread_count()``.

    A thread that shares its core with another program is waited for at the end of every operation: on a busy machine one
    thread is many times as fast as two.
    """
    limit = thread_count()
    if limit == 1:
        return 1
    now = time.monotonic()
    if now >= _load.until:
        _load.others, _load.until = _running_elsewhere(), now + LOOK_EVERY
    return max(1, min(limit, (os.cpu_count() or limit) - _load.others))


class _Load:
    """The last look at other programs, and when it is too old."""

    others = 0
    until = 0.0


_load = _Load()


def _running_elsewhere() -> int:
    """Number of tasks of other programs that run or wait for a core; 0 if the system does not say."""
    try:
        with open("/proc/loadavg") as file:
            return max(0, int(file.read().split()[3].split("/")[0]) - 1)  # this thread runs as well
    except (OSError, IndexError, ValueError):
        return 0


def in_threads(kernel: Callable[..., object], rows: int, work: int, arguments: tuple[Any, ...]) -> None:
    """Call ``kernel(first, last, *arguments)`` on parts of the rows, in as many threads as are idle and the work pays.

    ``work`` counts pairs of rows, or anything that takes as long. What a kernel writes for a row must not depend on the other
    rows of its part. Kernels should release the interpreter's lock. numba's own threads would not survive a fork.
    """
    most = min(1 + work // PARALLEL, rows)
    count = max(1, min(idle_threads(), most)) if most > 1 else 1
    ends = [rows * t // count for t in range(count + 1)]
    others = [_pool(os.getpid(), count).submit(kernel, ends[t], ends[t + 1], *arguments) for t in range(1, count)]
    kernel(ends[0], ends[1], *arguments)
    for other in others:
        other.result()


@cache
def _pool(process: int, count: int) -> ThreadPoolExecutor:
    """Threads of a process, which a fork does not inherit; torch computes on one thread in each."""
    return ThreadPoolExecutor(count - 1, "kernels", initializer=torch.set_num_threads, initargs=(1,))
